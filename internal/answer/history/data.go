package history

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Kind marks the JSON of a history. docs/schema/history.schema.json is its schema.
const Kind = "touchstone-history"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

// Data is the JSON of a history.
type Data struct {
	Kind    string   `json:"kind" doc:"Kind of the document."`
	Version int      `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	Metric  string   `json:"metric" doc:"Name of the metric."`
	Notes   []string `json:"notes" doc:"Statements about the order of the runs, or about a run that lost all trials."`
	Series  []series `json:"series" doc:"The values by cell and machine."`
}

type (
	series struct {
		Benchmark string           `json:"benchmark" doc:"Name of the benchmark."`
		Params    string           `json:"params" doc:"Parameters of the benchmark in canonical form."`
		Target    string           `json:"target" doc:"Name of the target."`
		Machine   string           `json:"machine" doc:"The host name; empty if it is unknown."`
		Unit      result.Unit      `json:"unit" doc:"Unit of the values."`
		Better    result.Direction `json:"better" doc:"The direction of better values."`
		Runs      []point          `json:"runs" schema:"minItems=1" doc:"The runs in their order."`
		Changes   []change         `json:"changes" doc:"The changes of the level, or of the variation alone."`
		TooFew    bool             `json:"too_few_runs" doc:"Set if the series has too few runs for a change."`
	}
	point struct {
		Run     string           `json:"run" doc:"Unique name of the run."`
		Started *time.Time       `json:"started" doc:"Wall-clock time of the start; null if it is unknown."`
		State   result.State     `json:"state" doc:"The progress of the run."`
		Median  document.Decimal `json:"median" doc:"The median of the trials, in the unit of the metric."`
		Trials  int              `json:"trials" schema:"minimum=1" doc:"Number of ok trials."`
		Lost    float64          `json:"lost_share" schema:"minimum=0;maximum=1" doc:"The share (0 to 1) of blocks that the run has lost."`
	}
	change struct {
		Run    string           `json:"run" doc:"The first run after the change."`
		At     int              `json:"at" schema:"minimum=1" doc:"Its place in runs, from 0."`
		Before document.Decimal `json:"before" doc:"The median of the runs between this change and the one before, in the unit of the metric."`
		After  document.Decimal `json:"after" doc:"The median of the runs between this change and the next, in the unit of the metric."`
		Ratio  document.Decimal `json:"ratio" doc:"after / before; null if it does not exist."`
		P      document.Decimal `json:"p" schema:"exclusiveMinimum=0;maximum=1" doc:"The p-value of the permutation test."`
		Word   string           `json:"word" doc:"The direction in the words of the metric, or the verdict in its place: emulated, trials lost; empty if only the variation changed."`
		Reason string           `json:"reason,omitempty" doc:"The reason of a verdict in the place of a direction."`
		Facts  []string         `json:"facts" doc:"The facts that differ between the runs beside the change."`
	}
)

func newData(h *history.History) Data {
	d := Data{Kind: Kind, Version: schemaVersion, Metric: h.Metric, Notes: append([]string{}, h.Notes...), Series: []series{}}
	for i := range h.Series {
		s := &h.Series[i]
		one := series{
			Benchmark: s.Benchmark, Params: s.Params, Target: s.Target, Machine: s.Machine, Unit: s.Metric.Unit, Better: s.Metric.Better,
			Runs: []point{}, Changes: []change{}, TooFew: s.Short(),
		}
		for _, p := range s.Points {
			value := point{Run: p.Run, State: p.State, Median: document.Decimal(p.Value), Trials: p.Trials, Lost: p.Lost}
			if !p.Started.IsZero() {
				start := p.Started.UTC()
				value.Started = &start
			}
			one.Runs = append(one.Runs, value)
		}
		for _, c := range s.Changes {
			jump := change{
				Run: s.Points[c.At].Run, At: c.At, Before: document.Decimal(c.Before), After: document.Decimal(c.After), Ratio: document.Decimal(c.Ratio), P: document.Decimal(c.P), Word: s.Word(&c), Reason: c.Why, Facts: append([]string{}, c.Facts...),
			}
			one.Changes = append(one.Changes, jump)
		}
		d.Series = append(d.Series, one)
	}
	return d
}
