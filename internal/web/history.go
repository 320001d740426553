package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	answer "github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// history is the course of a metric over all runs, or without a metric the list of the metrics.
func (s *server) history(ctx context.Context, db *store.Store, r *http.Request) (view, error) {
	query := r.URL.Query()
	selection := archive.Selection{Metric: query.Get("metric"), Benchmark: query.Get("benchmark"), Target: query.Get("target"), EmulatedVerdicts: query.Has(emulatedParameter)}
	if selection.Metric == "" {
		return view{address: "/history", document: func() (*document.Document, error) { return metrics(ctx, db) }}, nil
	}
	list, err := db.Runs(ctx)
	if err != nil {
		return view{}, err
	}
	address := url.Values{}
	for _, name := range []string{"metric", "benchmark", "target", emulatedParameter} {
		if query.Has(name) {
			address.Set(name, query.Get(name))
		}
	}
	v := view{address: "/history?" + address.Encode(), whole: true}
	if !slices.ContainsFunc(list, func(sum store.Summary) bool { return sum.State == result.Running }) {
		var text strings.Builder
		_, _ = fmt.Fprint(&text, "history ", selection, len(list))
		for _, sum := range list {
			_, _ = fmt.Fprint(&text, sum.ID, sum.State, sum.Ended.UnixNano(), sum.Trials)
		}
		v.key = text.String()
	}
	v.document = func() (*document.Document, error) {
		h, err := archive.History(ctx, db, selection)
		if err != nil {
			return nil, err
		}
		return answer.Document(&h), nil
	}
	return v, nil
}

// metricRow is a benchmark of the runs with its metrics.
type metricRow struct {
	Benchmark string   `json:"benchmark"`
	Metrics   []string `json:"metrics"`
	Runs      int      `json:"runs"`
}

// metrics lists the metrics of all runs, as the runs describe their benchmarks. A metric may be without values.
func metrics(ctx context.Context, db *store.Store) (*document.Document, error) {
	heads, err := db.Heads(ctx)
	if err != nil {
		return nil, err
	}
	var rows []metricRow
	for i := range heads {
		for _, b := range heads[i].Bench {
			index := slices.IndexFunc(rows, func(row metricRow) bool { return row.Benchmark == b.Name })
			if index < 0 {
				index = len(rows)
				rows = append(rows, metricRow{Benchmark: b.Name})
			}
			row := &rows[index]
			row.Runs++
			for _, m := range b.Metrics {
				if m.Component == "" && !slices.Contains(row.Metrics, m.Name) {
					row.Metrics = append(row.Metrics, m.Name)
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b metricRow) int { return strings.Compare(a.Benchmark, b.Benchmark) })
	l := newListing("metrics", "The metrics with a history", "benchmark", "metrics", "runs")
	for _, row := range rows {
		var cell document.Cell
		for _, name := range row.Metrics {
			query := url.Values{"benchmark": {row.Benchmark}, "metric": {name}}
			cell = append(cell, document.Span{Text: name, Link: "history?" + query.Encode()})
		}
		l.add(plain(row.Benchmark), cell, plain(fmt.Sprint(row.Runs)))
	}
	return l.document(rows), nil
}
