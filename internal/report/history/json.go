package history

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Kind marks the JSON of a history. docs/schema/history.schema.json is its schema.
const Kind = "touchstone-history"

// SchemaVersion is the version of the JSON.
const SchemaVersion = 1

type (
	jsonDocument struct {
		Kind    string       `json:"kind"`
		Version int          `json:"schema_version"`
		Metric  string       `json:"metric"`
		Notes   []string     `json:"notes"`
		Series  []jsonSeries `json:"series"`
	}
	jsonSeries struct {
		Benchmark string           `json:"benchmark"`
		Params    string           `json:"params"`
		Target    string           `json:"target"`
		Machine   string           `json:"machine"`
		Unit      result.Unit      `json:"unit"`
		Better    result.Direction `json:"better"`
		Runs      []jsonPoint      `json:"runs"`
		Changes   []jsonChange     `json:"changes"`
		// TooFew is set if the series has too few runs for a change.
		TooFew bool `json:"too_few_runs"`
	}
	jsonPoint struct {
		Run     string       `json:"run"`
		Started *time.Time   `json:"started"`
		State   result.State `json:"state"`
		Median  float64      `json:"median"`
		Trials  int          `json:"trials"`
		Lost    float64      `json:"lost_share"`
	}
	jsonChange struct {
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

// JSON writes the history as JSON.
func (h *History) JSON(w io.Writer) error {
	d := jsonDocument{Kind: Kind, Version: SchemaVersion, Metric: h.Metric, Notes: append([]string{}, h.Notes...), Series: []jsonSeries{}}
	for i := range h.Series {
		s := &h.Series[i]
		j := jsonSeries{
			Benchmark: s.Benchmark, Params: s.Params, Target: s.Target, Machine: s.Machine, Unit: s.Metric.Unit, Better: s.Metric.Better,
			Runs: []jsonPoint{}, Changes: []jsonChange{}, TooFew: s.Short(),
		}
		for _, p := range s.Points {
			point := jsonPoint{Run: p.Run, State: p.State, Median: p.Value, Trials: p.Trials, Lost: p.Lost}
			if !p.Started.IsZero() {
				started := p.Started.UTC()
				point.Started = &started
			}
			j.Runs = append(j.Runs, point)
		}
		for _, c := range s.Changes {
			change := jsonChange{
				Run: s.Points[c.At].Run, At: c.At, Before: c.Before, After: c.After, P: c.P, Word: c.Word, Reason: c.Why, Facts: append([]string{}, c.Facts...),
			}
			if !math.IsNaN(c.Ratio) {
				change.Ratio = &c.Ratio
			}
			j.Changes = append(j.Changes, change)
		}
		d.Series = append(d.Series, j)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}
