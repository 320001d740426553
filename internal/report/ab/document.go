package ab

import (
	"math"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Kind marks the JSON of a comparison of two builds. docs/schema/ab.schema.json is its schema.
const Kind = "touchstone-ab"

// SchemaVersion is the version of the JSON.
const SchemaVersion = 1

// Document is a comparison as its JSON has it, and as package answer/ab shows it. Ratios are B/A. A number that does not exist is nil.
type Document struct {
	Kind    string      `json:"kind"`
	Version int         `json:"schema_version"`
	Tool    result.Tool `json:"generator"`
	// Started is the start of the calibration, and Machine where it ran. Both may be unknown.
	Started time.Time    `json:"started,omitzero"`
	Machine *Machine     `json:"machine,omitempty"`
	Answer  stats.Answer `json:"answer"`
	Code    int          `json:"exit_code"`
	// Margin is the largest difference that does not matter, as a share.
	Margin float64 `json:"margin"`
	A      Build   `json:"a"`
	B      Build   `json:"b"`
	// Level is the error probability of each interval, over all looks.
	Level float64 `json:"interval_error_probability"`
	// MostRuns and Blocks are the design. They are 0 if no run followed the calibration.
	MostRuns int `json:"planned_runs"`
	Blocks   int `json:"blocks_per_run"`
	// Budget and Spent are in seconds.
	Budget float64 `json:"budget_s"`
	Spent  float64 `json:"spent_s"`
	// Unfinished is the reason for missing runs.
	Unfinished string `json:"unfinished,omitempty"`
	// Decision is the predicted time in seconds of a series that decides, without the calibration. It is 0 with an answer, and without such a series.
	Decision float64 `json:"decision_s,omitempty"`
	// DecisionRuns and DecisionBlocks are the design of this series.
	DecisionRuns   int       `json:"decision_runs,omitempty"`
	DecisionBlocks int       `json:"decision_blocks_per_run,omitempty"`
	Values         []Outcome `json:"values"`
	Runs           []Done    `json:"runs"`
}

// Machine is the machine of the runs.
type Machine struct {
	Hostname string `json:"hostname"`
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	CPU      string `json:"cpu"`
	CPUs     int    `json:"cpus"`
}

// Build is a side.
type Build struct {
	Target  string `json:"target"`
	Binary  string `json:"binary,omitempty"`
	Version string `json:"version,omitempty"`
}

// Outcome is a value with its answer.
type Outcome struct {
	Benchmark string           `json:"benchmark"`
	Params    string           `json:"params,omitempty"`
	Metric    string           `json:"metric"`
	Unit      result.Unit      `json:"unit"`
	Better    result.Direction `json:"better"`
	Answer    stats.Answer     `json:"answer"`
	Reason    string           `json:"reason,omitempty"`
	// Remedy is the way to an answer if more runs do not lead to one.
	Remedy string   `json:"remedy,omitempty"`
	After  int      `json:"decided_after_runs,omitempty"`
	Ratio  *float64 `json:"ratio,omitempty"`
	Lo     *float64 `json:"ratio_low,omitempty"`
	Hi     *float64 `json:"ratio_high,omitempty"`
	// Between is the standard deviation of the logarithm of the ratio between runs, apart from the variation within them.
	Between *float64 `json:"between_runs_log_sd,omitempty"`
	LostA   float64  `json:"lost_a"`
	LostB   float64  `json:"lost_b"`
	// Ratios are by run.
	Ratios []OfRun `json:"ratios"`
}

// OfRun is the ratio of one run, with the reason if it has none.
type OfRun struct {
	Ratio  *float64 `json:"ratio,omitempty"`
	Lo     *float64 `json:"low,omitempty"`
	Hi     *float64 `json:"high,omitempty"`
	Blocks int      `json:"blocks"`
	Reason string   `json:"reason,omitempty"`
}

// Done is a run of the comparison.
type Done struct {
	ID string `json:"id"`
	// Took is the time in seconds, with set-up and clean-up.
	Took float64 `json:"took_s"`
	// Page is the run's own page, in the folder of the comparison.
	Page string `json:"page"`
}

// Document returns the state of the series. page names the page of a run. The caller adds the facts that a series does not have: the tool, the
// machine, the builds, the exit code, the budget and the time that was spent.
func (s *Series) Document(page func(id string) string) *Document {
	decision := s.Decision()
	d := &Document{
		Kind: Kind, Version: SchemaVersion, Answer: s.Answer(), Margin: s.Margin, A: Build{Target: s.A}, B: Build{Target: s.B},
		Level: s.Level, MostRuns: s.Runs, Blocks: s.Blocks, Decision: decision.Time.Seconds(), DecisionRuns: decision.Runs, DecisionBlocks: decision.Blocks,
		Values: []Outcome{}, Runs: []Done{},
	}
	for i := range s.Results {
		r := &s.Results[i]
		v := Outcome{
			Benchmark: r.Name, Params: r.Params, Metric: r.Metric.Name, Unit: r.Metric.Unit, Better: r.Metric.Better, Answer: r.Answer,
			Reason: r.Why(s), Remedy: r.Remedy(s), After: r.After, Ratio: number(r.Ratio), Between: number(r.Pooled.Tau), LostA: r.Lost.Baseline, LostB: r.Lost.Other,
			Ratios: []OfRun{},
		}
		v.Lo, v.Hi = ends(r.Interval)
		for _, ratio := range r.Ratios {
			entry := OfRun{Ratio: number(ratio.Ratio), Blocks: ratio.Blocks, Reason: ratio.Reason}
			entry.Lo, entry.Hi = ends(ratio.Interval)
			v.Ratios = append(v.Ratios, entry)
		}
		d.Values = append(d.Values, v)
	}
	for _, r := range s.Done {
		d.Runs = append(d.Runs, Done{r.ID, r.Took.Seconds(), page(r.ID)})
	}
	return d
}

// number is nil for a number that is not finite.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func ends(ci *stats.Interval) (lo, hi *float64) {
	if ci == nil {
		return nil, nil
	}
	return number(ci.Lo), number(ci.Hi)
}
