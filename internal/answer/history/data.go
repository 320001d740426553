package history

import (
	"math"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// kind marks the JSON of a history. docs/schema/history.schema.json is its schema.
const kind = "touchstone-history"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

type (
	data struct {
		Kind    string   `json:"kind"`
		Version int      `json:"schema_version"`
		Metric  string   `json:"metric"`
		Notes   []string `json:"notes"`
		Series  []series `json:"series"`
	}
	series struct {
		Benchmark string           `json:"benchmark"`
		Params    string           `json:"params"`
		Target    string           `json:"target"`
		Machine   string           `json:"machine"`
		Unit      result.Unit      `json:"unit"`
		Better    result.Direction `json:"better"`
		Runs      []point          `json:"runs"`
		Changes   []change         `json:"changes"`
		// TooFew is set if the series has too few runs for a change.
		TooFew bool `json:"too_few_runs"`
	}
	point struct {
		Run     string       `json:"run"`
		Started *time.Time   `json:"started"`
		State   result.State `json:"state"`
		Median  float64      `json:"median"`
		Trials  int          `json:"trials"`
		Lost    float64      `json:"lost_share"`
	}
	change struct {
		// Run is the first run after the change.
		Run    string   `json:"run"`
		At     int      `json:"at"`
		Before float64  `json:"before"`
		After  float64  `json:"after"`
		Ratio  *float64 `json:"ratio"`
		P      float64  `json:"p"`
		Word   string   `json:"word"`
		Reason string   `json:"reason,omitempty"`
		Facts  []string `json:"facts"`
	}
)

// newData gives the history for JSON.
func newData(h *history.History) data {
	d := data{Kind: kind, Version: schemaVersion, Metric: h.Metric, Notes: append([]string{}, h.Notes...), Series: []series{}}
	for i := range h.Series {
		s := &h.Series[i]
		one := series{
			Benchmark: s.Benchmark, Params: s.Params, Target: s.Target, Machine: s.Machine, Unit: s.Metric.Unit, Better: s.Metric.Better,
			Runs: []point{}, Changes: []change{}, TooFew: s.Short(),
		}
		for _, p := range s.Points {
			value := point{Run: p.Run, State: p.State, Median: p.Value, Trials: p.Trials, Lost: p.Lost}
			if !p.Started.IsZero() {
				start := p.Started.UTC()
				value.Started = &start
			}
			one.Runs = append(one.Runs, value)
		}
		for _, c := range s.Changes {
			jump := change{
				Run: s.Points[c.At].Run, At: c.At, Before: c.Before, After: c.After, P: c.P, Word: s.Word(&c), Reason: c.Why, Facts: append([]string{}, c.Facts...),
			}
			if !math.IsNaN(c.Ratio) {
				jump.Ratio = &c.Ratio
			}
			one.Changes = append(one.Changes, jump)
		}
		d.Series = append(d.Series, one)
	}
	return d
}
