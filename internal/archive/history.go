package archive

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// Selection selects a metric of some cells.
type Selection struct {
	Metric string
	// Benchmark is the name of a benchmark or its first components, and Target a target or a pattern for [path.Match]. Empty ones select all.
	Benchmark, Target string
	// EmulatedVerdicts gives verdicts about speed for machines with an emulated CPU too.
	EmulatedVerdicts bool
}

func (s *Selection) selects(c result.Cell) bool {
	fits, err := path.Match(s.Target, c.Target)
	return (s.Benchmark == "" || bench.Matches(s.Benchmark, c.Benchmark)) && (s.Target == "" || err == nil && fits)
}

// ValueError is the error for a selection without a value.
type ValueError struct{ problem string }

func (e *ValueError) Error() string { return e.problem }

// History collects the values of a metric, one run after the other. A selection without a value is a *ValueError.
func History(ctx context.Context, db *store.Store, s Selection) (h history.History, err error) {
	index, err := db.Index(ctx)
	if err != nil {
		return h, err
	}
	hits := map[string]bool{}
	for _, e := range index {
		for _, run := range e.Runs {
			hits[run] = hits[run] || e.Metric == s.Metric && s.selects(e.Cell)
		}
	}
	runs, notes, err := runsInOrder(ctx, db)
	if err != nil {
		return h, err
	}
	b := history.NewBuilder(s.Metric, s.selects)
	b.EmulatedVerdicts = s.EmulatedVerdicts
	for _, id := range runs {
		if !hits[id] {
			continue
		}
		run, err := db.Run(ctx, id)
		if err != nil {
			return h, err
		}
		b.Add(WithoutVariables(run))
	}
	if h = b.History(notes...); len(h.Series) == 0 {
		return h, noValue(s, index)
	}
	return h, nil
}

// noValue is the error for a selection without a value.
func noValue(s Selection, index []store.IndexEntry) error {
	var names, places []string
	for _, e := range index {
		switch {
		case e.Metric == s.Metric:
			places = append(places, e.Benchmark+" on "+e.Target)
		case s.selects(e.Cell):
			names = append(names, e.Metric)
		}
	}
	list := func(texts []string) string {
		slices.Sort(texts)
		return strings.Join(slices.Compact(texts), ", ")
	}
	switch {
	case len(places) > 0:
		return &ValueError{fmt.Sprintf("no run has a value of %s that --benchmark and --target select; the runs have it of %s", s.Metric, list(places))}
	case len(names) > 0:
		return &ValueError{fmt.Sprintf("no run has a comparable metric %q; the metrics are %s", s.Metric, list(names))}
	}
	return &ValueError{fmt.Sprintf("no run has a metric %q: the folder has no results of this selection", s.Metric)}
}

// runsInOrder lists the runs by their start. If the clock was set back between two runs that were recorded here, their times contradict the order
// of recording, and all runs are in that order. A note names the two runs.
func runsInOrder(ctx context.Context, db *store.Store) (ids, notes []string, err error) {
	records, err := db.Recorded(ctx)
	if err != nil {
		return nil, nil, err
	}
	var last store.Recorded
	for _, r := range records {
		if r.Imported || r.Started.IsZero() {
			continue
		}
		if r.Started.Before(last.Started) {
			notes = append(notes, fmt.Sprintf("The clock was set back between the runs %s and %s. The runs are in the order of their recording.", last.ID, r.ID))
			break
		}
		last = r
	}
	if notes == nil {
		slices.SortStableFunc(records, func(a, b store.Recorded) int { return a.Started.Compare(b.Started) })
	}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids, notes, nil
}
