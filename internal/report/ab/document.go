package ab

import (
	"math"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Kind marks the JSON of a comparison of two builds. docs/schema/ab.schema.json is its schema.
const Kind = "touchstone-ab"

// SchemaVersion is the version of the JSON.
const SchemaVersion = 1

// Document is a comparison as its JSON has it, and as package answer/ab shows it. Ratios are B/A. A number that does not exist is nil.
type Document struct {
	Kind           string             `json:"kind" doc:"Kind of the document."`
	Version        int                `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	Tool           result.Tool        `json:"generator" doc:"The program that made the comparison."`
	Started        time.Time          `json:"started,omitzero" doc:"The start of the calibration; absent if it is unknown."`
	Machine        *Machine           `json:"machine,omitempty" doc:"The machine of the runs; absent if it is unknown."`
	Answer         stats.Answer       `json:"answer" doc:"The answer for all values and all gates by counts: worse if one of them is worse, and not worse if all are. Without values and gates it is not worse, because no count differs."`
	Code           int                `json:"exit_code" schema:"maximum=255" doc:"The exit code of the command: 4 worse, 0 not worse, 6 inconclusive, 130 interrupted, another one after an error."`
	Margin         float64            `json:"margin" schema:"exclusiveMinimum=0" doc:"The largest difference that does not matter, as a share: 0.03 is 3 %."`
	A              Build              `json:"a" doc:"The old build, the baseline."`
	B              Build              `json:"b" doc:"The new build."`
	Level          float64            `json:"interval_error_probability" schema:"exclusiveMinimum=0;maximum=1" doc:"The error probability of each interval, over all looks."`
	MostRuns       int                `json:"planned_runs" doc:"The largest number of runs; 0 if none followed the calibration."`
	Blocks         int                `json:"blocks_per_run" doc:"Number of measured blocks in each run; 0 if no run followed the calibration."`
	Budget         float64            `json:"budget_s" schema:"minimum=0" doc:"The longest time for all runs, in seconds."`
	Spent          float64            `json:"spent_s" schema:"minimum=0" doc:"The time of all runs with the calibration, in seconds."`
	Unfinished     string             `json:"unfinished,omitempty" schema:"minLength=1" doc:"The reason for missing runs."`
	Decision       float64            `json:"decision_s,omitempty" schema:"exclusiveMinimum=0" doc:"The predicted time of a comparison that decides, in seconds, without its calibration; absent with an answer, if more runs would not decide, and if no time up to a day would."`
	DecisionRuns   int                `json:"decision_runs,omitempty" schema:"minimum=4" doc:"Number of runs of this comparison."`
	DecisionBlocks int                `json:"decision_blocks_per_run,omitempty" schema:"minimum=1" doc:"Number of blocks in each of its runs."`
	Untimed        bool               `json:"untimed,omitempty" doc:"Set if the counts gave the answer, and no time was measured."`
	Counts         *counts.Comparison `json:"counts,omitempty" doc:"The counts of traced trials of both builds; absent without --first counts and without gates by counts."`
	Values         []Outcome          `json:"values" doc:"The compared values."`
	Runs           []Done             `json:"runs" doc:"The runs in their order, without the calibration."`
}

// Machine is the machine of the runs.
type Machine struct {
	Hostname string `json:"hostname" doc:"Name of the machine."`
	OS       string `json:"os" doc:"Name and version of the operating system."`
	Kernel   string `json:"kernel" doc:"Version of the kernel."`
	CPU      string `json:"cpu" doc:"Model of the CPU."`
	CPUs     int    `json:"cpus" doc:"Number of online logical CPUs."`
}

// Build is a side.
type Build struct {
	Target  string `json:"target" schema:"minLength=1" doc:"Name of the target."`
	Binary  string `json:"binary,omitempty" doc:"The path of the runtime."`
	Version string `json:"version,omitempty" doc:"The version of the runtime."`
}

// Outcome is a value with its answer.
type Outcome struct {
	Benchmark string           `json:"benchmark" schema:"minLength=1" doc:"Name of the benchmark."`
	Params    string           `json:"params,omitempty" doc:"Parameters of the benchmark in canonical form."`
	Metric    string           `json:"metric" schema:"minLength=1" doc:"Name of the metric."`
	Unit      result.Unit      `json:"unit" doc:"Unit of the values."`
	Better    result.Direction `json:"better" doc:"The direction of better values."`
	Answer    stats.Answer     `json:"answer" doc:"The answer of the value."`
	Reason    string           `json:"reason,omitempty" schema:"minLength=1" doc:"The reason for an inconclusive answer."`
	Remedy    string           `json:"remedy,omitempty" schema:"minLength=1" doc:"The way to an answer, if more runs do not lead to one."`
	After     int              `json:"decided_after_runs,omitempty" schema:"minimum=1" doc:"Number of runs that decided the value."`
	Ratio     *float64         `json:"ratio,omitempty" schema:"minimum=0" doc:"B / A over all runs."`
	Lo        *float64         `json:"ratio_low,omitempty" schema:"minimum=0" doc:"The lower end of the interval of the ratio, which holds at all looks together."`
	Hi        *float64         `json:"ratio_high,omitempty" schema:"minimum=0" doc:"The upper end of this interval."`
	Between   *float64         `json:"between_runs_log_sd,omitempty" schema:"minimum=0" doc:"The standard deviation of the logarithm of the ratio from run to run, apart from the variation within runs."`
	LostA     float64          `json:"lost_a" schema:"minimum=0;maximum=1" doc:"The share (0 to 1) of blocks that A has lost."`
	LostB     float64          `json:"lost_b" schema:"minimum=0;maximum=1" doc:"The share (0 to 1) of blocks that B has lost."`
	Ratios    []OfRun          `json:"ratios" doc:"The ratio of each run, in the order of the runs."`
}

// OfRun is the ratio of one run, with the reason if it has none.
type OfRun struct {
	Ratio  *float64 `json:"ratio,omitempty" schema:"exclusiveMinimum=0" doc:"B / A."`
	Lo     *float64 `json:"low,omitempty" schema:"minimum=0" doc:"The lower end of the run's own interval."`
	Hi     *float64 `json:"high,omitempty" schema:"minimum=0" doc:"The upper end of this interval."`
	Blocks int      `json:"blocks" doc:"Number of blocks with both sides."`
	Reason string   `json:"reason,omitempty" schema:"minLength=1" doc:"The reason for a missing ratio."`
}

// Done is a run of the comparison.
type Done struct {
	ID   string  `json:"id" schema:"minLength=1" doc:"Unique name of the run."`
	Took float64 `json:"took_s" schema:"minimum=0" doc:"The time with set-up and clean-up, in seconds."`
	Page string  `json:"page" schema:"minLength=1" doc:"The page of the run, in the folder of the comparison."`
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
