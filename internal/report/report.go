// Package report is the pure model of a report: what can be said of a run, ready to be
// laid out. The packages below it (text, html, json) lay it out and decide nothing.
//
// The rules, in one place, so that every report of a run says the same:
//
//   - Only trials that are ok and no warm-up give numbers. All others are counted and
//     listed with their reasons; none becomes a number or an empty cell without one.
//   - A block is the unit of repetition. A metric of which one trial takes many values (a
//     series) gives one value a trial, their median: the values of one trial share its
//     container and its moment, and to count each would make every interval too narrow.
//     The raw values stay in the model for plots.
//   - The baseline of a benchmark is the run's if it has a trial of that benchmark with
//     these parameters that is ok, else the first target that has one.
//   - Comparisons are paired by block with the baseline. A family, in which Holm's
//     correction keeps the chance of one false verdict at 5 %, is one metric of one
//     benchmark: all targets against the baseline, as in Dunnett's comparisons with a
//     control (C. W. Dunnett, "A Multiple Comparison Procedure for Comparing Several
//     Treatments with a Control", JASA 50 (1955) 1096–1121). All metrics of a benchmark
//     as one family was rejected: a verdict on one metric would then depend on how many
//     others the benchmark happens to record, and the twenty metrics of
//     performance.syscall.latency on four targets could show nothing with the ten blocks
//     of the quick plan, be one of them fifty times slower. What this costs is said in the
//     report: see [Model.Families].
//   - A metric that the baseline lacks has no ratios, rather than another baseline for that
//     metric alone: a ratio to another target than the one named above it misleads.
//   - What a layer adds is the median of the differences within blocks: see [Layers]. It is
//     an estimate with an interval, no verdict, and belongs to no family.
//   - Costs by component (see [Components]) have neither verdicts nor a part in the findings:
//     they say where a cost lies, and the metrics of the whole are compared.
//   - Overhead (wang, equation 1) is given only against native.
//   - A median beyond the bound of its metric is a finding by itself, before all others, from the first trial on: a
//     limit that does not hold is no matter of statistics, and a runtime that ignores it does so on any baseline.
//   - A benchmark that every target skipped has no section, and stands with the reason in a list.
//
// It refuses to say anything of fewer than [stats.MinSamples] blocks but the values.
package report

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Options say how a report is made.
type Options struct {
	// Seed is that of the bootstraps. The same run and seed give the same report.
	Seed uint64
	// baselines are those that benchmarks are to have in place of the run's, where they can.
	baselines map[key]string
}

// Model is all that a report of one run says.
type Model struct {
	Run Run
	// Targets are those of the run, in its order, also those that could not run.
	Targets []Target
	// Suites hold the benchmarks in the order of the run.
	Suites   []Suite
	Findings Findings
	// Warnings say what makes numbers of this run less trustworthy, the same kinds together.
	Warnings []WarningGroup
	// Missing are the cells in which trials did not end well.
	Missing []Missing
	// Unmeasured are the benchmarks that were skipped on every target; they are in no suite.
	Unmeasured []Unmeasured
	// Families counts the families of comparisons that were judged (see the package
	// comment). In each the chance of a false verdict is 5 % at most, so that of Families
	// metrics on which no target differs up to one in twenty may seem to.
	Families int
	Seed     uint64
}

// Run are the facts of a run. Trials, targets and benchmarks stand elsewhere in the model.
type Run struct {
	result.Run
	// Counts are the trials that are no warm-up by the way they ended; Warmup is the number
	// of the others.
	Counts map[result.Status]int
	Warmup int
	// Self is the share of all trials' time that Touchstone itself spent on the CPU.
	Self float64
}

// Target is a target of a run.
type Target struct {
	result.Target
	// OK and Total count its trials without warm-up.
	OK, Total int
}

// Suite is the benchmarks of one context.
type Suite struct {
	Name       string
	Benchmarks []Benchmark
}

// Benchmark is one benchmark with its parameters on all targets.
type Benchmark struct {
	Name, Params    string
	Summary, Source string
	// Baseline is the target the others are compared with, empty if no trial was ok.
	Baseline string
	// BaselineNote says why it is not the run's, empty if it is.
	BaselineNote string
	// Blocks counts the measured blocks in which a trial was ok.
	Blocks int
	// Targets are the outcomes on all targets that could run at all, in the order of the run.
	Targets []Outcome
	// Metrics are those of which some target has a value; Unrecorded names the others, but for
	// optional ones. The metrics of Components are in neither.
	Metrics    []Metric
	Unrecorded []string
	// Unbased names the metrics that the baseline lacks, so that there are no ratios.
	Unbased []string
	// Layers is what each layer adds, where a run has targets that tell layers apart.
	Layers []Layers
	// Components are costs by the component that caused them.
	Components []Components
	// Conditions are what it was measured under.
	Conditions []Condition
	// Breaches are medians beyond the bounds of their metrics.
	Breaches []Breach
}

// Title is the benchmark's name with its parameters.
func (b *Benchmark) Title() string { return title(b.Name, b.Params) }

func title(name, params string) string {
	if params == "" {
		return name
	}
	return name + " " + params
}

// Outcome is how the trials of a benchmark on one target ended.
type Outcome struct {
	Target string
	// OK, Failed, Timeout and Skipped count trials without warm-up, Warmup the others.
	OK, Failed, Timeout, Skipped, Warmup int
	// Disturbed counts the ok trials during which the host did something else.
	Disturbed int
	// Reason is that of the first trial that was not ok; see also Why.
	Reason string
	// Phases are the timed regions of operations, in the order in which they happened.
	Phases []Phase
}

// Phase is a timed region over the ok trials of a cell, or a step of one.
type Phase struct {
	Name string
	// Seconds is the median over trials; for a phase that a trial goes through several
	// times, of the trials' medians.
	Seconds float64
	// Times is how often a trial goes through it.
	Times int
	// Steps are the calls that it consists of, if it is several; they are part of Seconds.
	Steps []Phase
}

// Metric is a metric of a benchmark on all its targets.
type Metric struct {
	result.Metric
	// Cells stand in the order of Benchmark.Targets.
	Cells []Cell
	// BlocksNeeded is the least number of blocks with which a family as large as this
	// metric's can show anything.
	BlocksNeeded int
}

// Cell is one metric on one target.
type Cell struct {
	Target string
	// Summary is nil if there is no number; Reason then says why.
	Summary *stats.Summary
	Reason  string
	// Absent tells that the metric is optional and this target has none: nothing is missing.
	Absent bool
	// Baseline tells that the others are compared with this cell.
	Baseline bool
	// Comparison is with the baseline; nil for the baseline itself and where one of the two
	// has no number.
	Comparison *stats.Comparison
	// Overhead is that of wang's equation 1; nil unless the baseline is native.
	Overhead *float64
	// Points are the values behind Summary in the order in which they were taken.
	Points []Point
	// Curve is a series by the place of its values; nil for metrics that are none.
	Curve []Place
}

// Point is the value of one trial.
type Point struct {
	Seq, Block int
	Value      float64
	// Disturbed tells that the trial is marked as disturbed.
	Disturbed bool
}

// Place is one place in a series (the first, second, … container) over all trials.
type Place struct {
	Median float64
	Values []float64 // in the order of the trials
}

// Missing is a cell in which trials did not end well.
type Missing struct {
	Benchmark, Params, Target string
	Status                    result.Status
	// Count of Total trials without warm-up ended so.
	Count, Total int
	// Reason and Output are those of the first.
	Reason, Output string
}

// Title is the benchmark's name with its parameters.
func (m *Missing) Title() string { return title(m.Benchmark, m.Params) }

// MissingGroup is the targets on which a benchmark lacks the same for the same reason.
type MissingGroup struct {
	Missing // of the first target
	Targets []string
}

// MissingGroups puts together what is missing in the same way, of benchmarks that were measured on some target.
func (m *Model) MissingGroups() []MissingGroup {
	var groups []MissingGroup
	for _, miss := range m.Missing {
		if !m.measured(miss) {
			continue
		}
		at := slices.IndexFunc(groups, func(g MissingGroup) bool {
			alike := miss
			alike.Target = g.Target
			return alike == g.Missing
		})
		if at < 0 {
			groups = append(groups, MissingGroup{Missing: miss})
			at = len(groups) - 1
		}
		groups[at].Targets = append(groups[at].Targets, miss.Target)
	}
	return groups
}

// Findings are the clearest statements that the run supports.
type Findings struct {
	// Breaches are what does not hold: bounds that medians exceed. They come first, and need no comparison.
	Breaches []Breach
	// Statements each rest on comparisons that show a difference, the largest first.
	Statements []string
	// Comparisons counts what the comparisons show, those without a difference among
	// them; empty if there are none.
	Comparisons string
	// NotMeasured says what is not in the numbers and why, an item for each reason.
	NotMeasured []string
}

// WarningGroup is warnings of one kind.
type WarningGroup struct {
	Title, Advice string
	Items         []string
}
