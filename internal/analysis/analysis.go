// Package analysis computes the numbers of one run or several: cells, comparisons with a baseline, families and their decisions. It
// does no input or output and writes no sentences. Package finding states in words what an analysis supports.
//
// An analysis of one run is the analysis of several with a single run. Several runs add their differences and a ratio in
// each run.
//
// # Numbers
//
//   - Only trials that are ok and no warm-up give numbers. All others are counted, and listed with their reasons.
//   - A block is the unit of repetition. A series (a metric with many values in one trial) gives one value a trial: their
//     median. The values of one trial share its container and its moment, so counting each would make every interval too
//     narrow. The raw values stay in the model for plots.
//   - The trend of a series is fitted to the medians of its places over all trials: see [stats.FitTrend]. It has no verdict and
//     belongs to no family.
//   - A derived metric is computed from another one. It has neither ratio nor verdict, because it would count the same
//     evidence twice.
//   - Costs by component (see [Components]) have no verdicts and no part in findings. They locate a cost; the metric of the
//     whole is the one that is compared.
//   - A benchmark that every target skipped has no section. It is listed with the reason.
//   - With fewer than [stats.MinSamples] blocks there are values and nothing else.
//
// # Ratios
//
//   - The ratio of a target is the estimate of Hodges and Lehmann of target / baseline within blocks: see [stats.Compare]. Tables,
//     plots, findings, JSON and Overhead all use it. It is not the quotient of the two medians.
//   - People read it as a cost in tables, "152 ×" or "0.500 ×", and as a factor in the direction of the verdict in sentences, "152 × slower":
//     see [quantity.Cost] and [quantity.Factor].
//   - Overhead is |ratio − 1| (wang, equation 1). It exists only against a native baseline.
//   - The baseline of a benchmark is the run's baseline if that has a trial of the benchmark, with these parameters, that is
//     ok. Otherwise it is the first target that has one.
//   - A metric without a value on the baseline, or with 0 in all its trials, has no ratios. Another baseline for that metric alone would mislead.
//   - A family is one metric of one benchmark in one run: all targets against the baseline, as in Dunnett's comparisons with
//     a control (C. W. Dunnett, "A Multiple Comparison Procedure for Comparing Several Treatments with a Control", JASA 50
//     (1955) 1096–1121). Holm's correction keeps the chance of one false verdict in a family at 5 %. We rejected all metrics
//     of a benchmark as one family: a verdict on one metric would then depend on how many others the benchmark records. With
//     the ten blocks of the quick plan, the twenty metrics of a latency benchmark on four targets could show nothing, not
//     even a factor of fifty. So there are two tiers: a difference is shown in its family, and it may also be shown over
//     all comparisons of the run (stats.Comparison.Everywhere). Findings begin with the second kind, and everything marks
//     the first. A report states the cost: see [Analysis].Families.
//   - The worst case of a time ([Worst]) has bounds with intervals and no verdicts. Bounds of two targets are not compared.
//   - The part of a layer is the median of the differences within blocks: see [Layers]. It is an estimate with an interval.
//     It has no verdict and belongs to no family.
//   - A median beyond the bound of its metric is a finding by itself, before all others and from the first trial on. A
//     broken limit needs no statistics, and it is broken on any baseline.
//
// # Lost trials
//
//   - Trials are not lost by chance: a slow trial exceeds a limit, and a fast one does not. A target that has lost more than
//     [stats.MostLost] of its blocks of a benchmark is never called better there, and meets no goal. If the baseline has lost more, no target is
//     called worse. The ratio of [stats.TrialsLost] has no direction.
//   - A block is lost if the target's trial failed or timed out, or if the target was given up or quarantined before and another target has
//     a value. Blocks that the end of the budget cuts count as lost on no target.
//
// # Emulated CPUs
//
//   - If the CPU of a machine is emulated, or may be, metrics of speed have values and ratios but no
//     verdicts: the verdict is [stats.Withheld], and the goals of the scorecard are [EmulatedScore]. [result.Metric.OfSpeed] decides which metrics these are.
//     Ratios are raw then, because a factor "slower" is a verdict in itself. Only [Options].EmulatedVerdicts gives the verdicts.
//   - Verdicts about memory, numbers of things and limits hold on an emulated CPU, and stay.
//
// # Several runs
//
//   - Runs share the ratio to a baseline within each run, with the interval and the verdict of the run alone. If
//     the runs have different baselines for a benchmark, the first target that all of them have becomes the baseline. If
//     no target is in all of them, each ratio has its own baseline, and the findings skip the benchmark.
//   - Absolute values of different machines are shown side by side and never compared: no ratio, no verdict, no common
//     axis. Only [Options].AcrossMachines gives their ratios, with an interval and without a verdict.
//     [result.Host.SameMachine] decides which runs are of one machine.
//   - Absolute values of runs of one machine may share an axis. They have no verdict either, because such a verdict
//     needs the variation from run to run.
//   - Benchmarks are the same if name and parameters are the same; metrics, if name, unit and direction are.
//   - A run that lacks a value has the reason in its place.
package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Options are the choices of the caller.
type Options struct {
	// AcrossMachines compares absolute values of the runs with the first run's.
	AcrossMachines bool
	// EmulatedVerdicts gives verdicts about speed for machines with an emulated CPU too.
	EmulatedVerdicts bool
	// MinEffect is the largest relative difference that does not matter: 0.03 is 3 %. With 0 every difference matters.
	MinEffect float64
	// Release drops the samples of the runs as soon as they are read, because 10⁶ samples take much memory. The caller must not use them
	// afterwards. The analysis is the same.
	Release bool
}

// Analysis is the content of an analysis of one run or several.
type Analysis struct {
	// Runs are sorted by machine, and machines by their first run. The first run is the reference.
	Runs     []Run
	Machines []Machine
	// Facts describe machines and runs, Versions describe targets, both by run.
	Facts, Versions []fact.Row
	// Suites are in the order of the runs.
	Suites   []Suite
	Coverage []Coverage
	// AcrossMachines, EmulatedVerdicts and MinEffect are the options of the analysis.
	AcrossMachines, EmulatedVerdicts bool
	MinEffect                        float64
}

// Families is the number of families of comparisons in all runs (see the package comment), Comparisons the number of
// comparisons in them. In each family the chance of a false verdict is at most 5 %. If no target differed on any metric,
// about one family in twenty could still show a difference. Over all comparisons of a run the chance of a difference that is
// marked as shown everywhere is at most 5 %.
func (a *Analysis) Families() (families, comparisons int) {
	for i := range a.Runs {
		families += a.Runs[i].Families
		comparisons += a.Runs[i].Comparisons
	}
	return families, comparisons
}

// Benchmarks are the benchmarks of all suites.
func (a *Analysis) Benchmarks() []*Benchmark {
	var benchmarks []*Benchmark
	for i := range a.Suites {
		for n := range a.Suites[i].Benchmarks {
			benchmarks = append(benchmarks, &a.Suites[i].Benchmarks[n])
		}
	}
	return benchmarks
}

// Run is a run of an analysis. Its Trials and Bench are empty: their content is in the rest of the model.
type Run struct {
	result.Run
	// Label names the run: its host, with a number if several runs have the same.
	Label string
	// Machine is an index into Analysis.Machines.
	Machine int
	// Targets are all targets in the order of the run, including unavailable ones.
	Targets []Target
	// Counts are the numbers of trials by status, without warm-up. Warmup is the number of warm-up trials.
	Counts map[result.Status]int
	Warmup int
	// Self is Touchstone's own CPU time as a share of the time of all trials.
	Self float64
	// Disturbances are the marks of the trials behind the numbers, CarryOvers the effects of a target on the next.
	Disturbances []Disturbance
	CarryOvers   []CarryOver
	// Missing are the cells with trials that did not end well.
	Missing []Missing
	// FailedCalls are the calls of engines that failed, by target and in the order of a container's life.
	FailedCalls []FailedCalls
	// Unmeasured are the benchmarks that every target skipped. They are in no suite.
	Unmeasured []Unmeasured
	// Scorecard is empty if the run measured fewer than two dimensions.
	Scorecard Scorecard
	// Families and Comparisons count the judged families and the comparisons in them. Withheld counts the comparisons without a verdict
	// because the CPU is emulated.
	Families, Comparisons, Withheld int
	// Together counts the comparisons with a p-value. Differences counts the shown differences, Everywhere those shown over all of Together.
	Together, Differences, Everywhere int
	// Unjudged is set if verdicts about speed are withheld.
	Unjudged bool
	rule     rule
}

// Target is a target of a run.
type Target struct {
	result.Target
	// OK and Total count its trials without warm-up.
	OK, Total int
}

// Suite is the benchmarks whose names have the same first component.
type Suite struct {
	Name       string
	Benchmarks []Benchmark
}

// Key identifies a benchmark with its parameters.
type Key struct {
	Name   string `json:"benchmark" doc:"Name of the benchmark."`
	Params string `json:"params,omitempty" doc:"Parameters of the benchmark in canonical form."`
}

// Title is the benchmark's name with its parameters.
func (k Key) Title() string { return strings.TrimSuffix(k.Name+" "+k.Params, " ") }

// Benchmark is one benchmark with its parameters, on all targets of all runs.
type Benchmark struct {
	Key
	Summary, Source string
	// Place labels the places of its series.
	Place string
	// Baseline is the target of all ratios. It is empty if the runs have no baseline in common, or no trial was ok. Note
	// explains an unusual baseline.
	Baseline, Note string
	// Sections are by run, nil for a run that did not measure the benchmark.
	Sections []*Section
	Metrics  []Metric
	// Conditions are the conditions of the measurements, by run.
	Conditions []fact.Row
}

// Derived lists the derived metrics with their sources: "Index from LoopsPerSecond".
func (b *Benchmark) Derived() []string {
	var texts []string
	for _, m := range b.Metrics {
		if m.DerivedFrom != "" {
			texts = append(texts, m.Name+" from "+m.DerivedFrom)
		}
	}
	return texts
}

// Section is a benchmark in one run, apart from its metrics.
type Section struct {
	// Baseline is the target of the run's ratios, empty if no trial was ok. BaselineNote gives the reason if it is not the
	// run's baseline.
	Baseline, BaselineNote string
	// Blocks counts the measured blocks with a trial that was ok.
	Blocks int
	// Targets are the outcomes on all targets that were available, in the order of the run.
	Targets []Outcome
	// Unrecorded names the metrics without a value on any target, except optional ones and components.
	Unrecorded []string
	// Unbased names the metrics without a value on the baseline. They have no ratios.
	Unbased []string
	// Zero names the metrics that are 0 in all trials of the baseline. They have no ratios either.
	Zero []string
	// Layers split metrics by layer. They exist if the run has targets that differ by one layer.
	Layers     []Layers
	Components []Components
	Timelines  []Timelines
	// Stated are the conditions that are results in words, Conditions the others.
	Stated, Conditions []Condition
	// Breaches are medians beyond the bounds of their metrics.
	Breaches []Breach
	rule     rule
}

// rule is the rule of a run that stops single cells. The zero value stands for no rule.
type rule struct {
	looks *stats.Sequential
	// final is set if the run is complete, so that no look follows the last one.
	final bool
}

func ruleOf(run *result.Run) rule {
	if run.Stopping == nil || len(run.Stopping.Looks) == 0 {
		return rule{}
	}
	return rule{stats.NewSequential(run.Stopping.Looks), run.State == result.Complete}
}

// at is the look after a number of blocks; nil without a rule. stop is set if the rule made it the last look. A budget that ended the run
// has nothing to do with the values, so the last look then has all the error that is left.
func (r rule) at(blocks int, stop bool) *stats.Look {
	if r.looks == nil {
		return nil
	}
	return r.looks.At(blocks, r.final && !stop)
}

// look is the look of the comparison of two targets.
func (s *Section) look(baseline, target string) *stats.Look {
	a, b := s.outcome(baseline), s.outcome(target)
	if a == nil || b == nil {
		return nil
	}
	return s.rule.at(min(a.blocks, b.blocks), a.stopped || b.stopped)
}

// lost are the losses of a comparison of two targets.
func (s *Section) lost(baseline, target string) stats.Losses {
	outcome := func(name string) Outcome {
		if o := s.outcome(name); o != nil {
			return *o
		}
		return Outcome{}
	}
	a, b := outcome(baseline), outcome(target)
	subtract := func(blocks, exceptions []int) int {
		return len(lists.Filter(blocks, func(block int) bool { return !slices.Contains(exceptions, block) }))
	}
	return stats.Losses{
		Baseline: a.LostShare(), Other: b.LostShare(), BaselineBlocks: subtract(a.lost, b.lost), OtherBlocks: subtract(b.lost, a.lost),
	}
}

// outcome is the outcome on a target, nil if it was unavailable.
func (s *Section) outcome(target string) *Outcome {
	if i := slices.IndexFunc(s.Targets, func(o Outcome) bool { return o.Target == target }); i >= 0 {
		return &s.Targets[i]
	}
	return nil
}

// Outcome counts the trials of a benchmark on one target by their ends.
type Outcome struct {
	Target    string `json:"target" doc:"Name of the target."`
	OK        int    `json:"ok" doc:"Number of trials that were ok, without warm-up."`
	Failed    int    `json:"failed" doc:"Number of trials that failed, without warm-up."`
	Timeout   int    `json:"timeout" doc:"Number of trials that exceeded their limit, without warm-up."`
	Skipped   int    `json:"skipped" doc:"Number of skipped trials, without warm-up."`
	Warmup    int    `json:"warmup" doc:"Number of warm-up trials."`
	Disturbed int    `json:"disturbed" doc:"Number of ok trials that other activity on the host disturbed."`
	Lost      int    `json:"lost,omitempty" doc:"Number of blocks that the target has lost although it has trials that are ok: their trials failed or timed out, or the cell was given up before; absent if none."`
	Untried   int    `json:"-"` // the lost blocks without a trial
	lost      []int  // the lost blocks
	// blocks is the number of blocks until the last trial. stopped is set if the rule of the run stopped the cell.
	blocks  int
	stopped bool
	Reason  string `json:"reason,omitempty" doc:"Reason of the first trial that was not ok."` // see also Why
	// Phases are the timed regions in their order, for benchmarks that show them.
	Phases []Phase `json:"-"`
}

// Total counts the trials without warm-up.
func (o *Outcome) Total() int { return o.OK + o.Failed + o.Timeout + o.Skipped }

// Counts spells the counts: "10 ok", "8 ok, 2 failed".
func (o *Outcome) Counts() string {
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{o.OK, "ok"}, {o.Failed, "failed"}, {o.Timeout, "timed out"}, {o.Skipped, "skipped"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	if len(parts) == 0 {
		return "warm-up only"
	}
	return strings.Join(parts, ", ")
}

// Why is the reason for missing values: "skipped: REASON", "failed 2 of 10: REASON OF THE FIRST". It is empty if all
// trials were ok.
func (o *Outcome) Why() string {
	what := o.worst()
	if bad := o.Failed + o.Timeout; bad > 0 {
		what += fmt.Sprintf(" %d of %d", bad, o.Total())
	}
	if o.Reason == "" {
		return what
	}
	return what + ": " + o.Reason
}

// LostShare is the share (0–1) of the blocks that the target has lost.
func (o *Outcome) LostShare() float64 {
	if o.Lost == 0 {
		return 0
	}
	return float64(o.Lost) / float64(o.OK+o.Lost)
}

// LostText counts the lost blocks: "3 of 10 blocks are lost (2 timed out, 1 not tried)". It is empty without any.
func (o *Outcome) LostText() string {
	if o.Lost == 0 {
		return ""
	}
	ends := Outcome{Failed: o.Failed, Timeout: o.Timeout}
	var parts []string
	if o.Failed+o.Timeout > 0 {
		parts = append(parts, ends.Counts())
	}
	if o.Untried > 0 {
		parts = append(parts, fmt.Sprintf("%d not tried", o.Untried))
	}
	are := "are"
	if o.Lost == 1 {
		are = "is"
	}
	return fmt.Sprintf("%d of %s %s lost (%s)", o.Lost, wording.Counted(o.OK+o.Lost, "block"), are, strings.Join(parts, ", "))
}

// worst is the worst end of a trial, empty if all were ok.
func (o *Outcome) worst() string {
	switch {
	case o.Failed > 0:
		return "failed"
	case o.Timeout > 0:
		return "timed out"
	case o.Skipped > 0:
		return "skipped"
	case o.OK > 0:
		return ""
	}
	return "warm-up only"
}

// Phase is a timed region over the ok trials of a cell, or a step of one.
type Phase struct {
	Name string
	// Seconds is the median over trials. For a phase that occurs several times in a trial it is the median of the trials'
	// medians.
	Seconds float64
	// Times is the number of occurrences in a trial.
	Times int
	// Steps are the calls of a phase that consists of several. Seconds includes them.
	Steps []Phase
}

// Metric is a metric of a benchmark on all targets of all runs.
type Metric struct {
	result.Metric
	// Rows are by target, in the order of the runs.
	Rows []Row
}

// Unbased reports whether no run has a value of the metric, other than 0, on its baseline.
func (m *Metric) Unbased() bool {
	return !m.based(func(c Cell) bool { return c.Baseline && c.Summary.Max != 0 })
}

// WhyUnbased is the reason why an unbased metric has no ratios to a baseline.
func (m *Metric) WhyUnbased(baseline string) string {
	if m.based(func(c Cell) bool { return c.Baseline }) {
		return baseline + " is 0"
	}
	return baseline + " has no value"
}

func (m *Metric) based(match func(Cell) bool) bool {
	return slices.ContainsFunc(m.Rows, func(r Row) bool { return slices.ContainsFunc(r.Cells, match) })
}

// Breached reports whether the median of the cell is beyond the bound of the metric. A bound of a time does not hold or break on an
// emulated CPU.
func (m *Metric) Breached(c *Cell) bool {
	return !c.Emulated && m.Bound.Broken != "" && c.Summary != nil && c.Summary.Median > m.Bound.Most
}

// BaselineSummary summarizes the target that the cells of a run are compared with. It is nil without one.
func (m *Metric) BaselineSummary(run int) *stats.Summary {
	for _, r := range m.Rows {
		if r.Cells[run].Baseline {
			return r.Cells[run].Summary
		}
	}
	return nil
}

// Row is a metric on one target.
type Row struct {
	Target string
	// Baseline is set for the target of all ratios in all runs.
	Baseline bool
	// Cells are by run.
	Cells []Cell
}

// Has reports whether any run has a number.
func (r *Row) Has() bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Summary != nil })
}

// Cell is a metric on one target in one run.
type Cell struct {
	// Summary is nil without a number. Reason then explains it, and Lack explains it in one or two words.
	Summary      *stats.Summary
	Reason, Lack string
	// Absent is set if the metric is optional and this target does not have it. Nothing is missing then.
	Absent bool
	// Baseline is set on the cell that the run's other cells are compared with.
	Baseline bool
	// Emulated is set if the metric depends on the speed of an emulated CPU. The cell then has no verdict, unless
	// Options.EmulatedVerdicts asks for it.
	Emulated bool
	// Comparison is the comparison with the baseline. It is nil on the baseline, for a derived metric, and if one of the
	// two has no number.
	Comparison *stats.Comparison
	// Overhead is |ratio − 1| (wang, equation 1). It is nil unless the baseline is native.
	Overhead *float64
	// BlocksNeeded is the smallest number of blocks that can give a verdict in a family of this size.
	BlocksNeeded int
	// Points are the values of Summary in the order of the trials.
	Points []Point
	// Curve is a series by place; nil for other metrics.
	Curve []Place
	// Trend is the trend of Curve. It is nil for metrics without one, and for curves that are too short.
	Trend *stats.Trend
	// Worst is the worst case of a time; nil for other metrics, and without enough samples.
	Worst *Worst
	// Across is the typical ratio to the first run, see [stats.CompareUnpaired]. It has no verdict. It is nil without
	// Options.AcrossMachines.
	Across *stats.Comparison
}

// Point is the value of one trial. It is small, because an analysis has one for each trial and metric.
type Point struct {
	*result.Trial
	Value float64
}

// Disturbed reports whether the trial is marked as disturbed.
func (p Point) Disturbed() bool { return len(p.Host.Marks) > 0 }

// Place is one place in a series (the first, second, … value) over all trials.
type Place struct {
	Median float64
	Values []float64 // in the order of the trials
}

// Missing is a cell with trials that did not end well.
type Missing struct {
	Key
	Target string        `json:"target" doc:"Name of the target."`
	Status result.Status `json:"status" doc:"Outcome of the trials."`
	Count  int           `json:"count" doc:"Number of trials with this outcome."`
	Total  int           `json:"of" doc:"Number of all trials of the cell, without warm-up."`
	Reason string        `json:"reason" doc:"Reason of the first such trial."`
	Output string        `json:"-"` // of the first such trial
}

// Counts spells the number of these trials: "3 of 10 failed".
func (m *Missing) Counts() string {
	return fmt.Sprintf("%d of %d %s", m.Count, m.Total, quantity.StatusWord(m.Status))
}

// MissingGroup is the targets with the same gap for the same reason.
type MissingGroup struct {
	Missing // of the first target
	Targets []string
}

// MissingGroups groups equal gaps of benchmarks that were measured on some target.
func (r *Run) MissingGroups() []MissingGroup {
	var groups []MissingGroup
	for _, miss := range r.Missing {
		if !r.Measured(&miss) {
			continue
		}
		g := lists.Place(&groups, func(g *MissingGroup) bool {
			twin := miss
			twin.Target = g.Target
			return twin == g.Missing
		}, MissingGroup{Missing: miss})
		g.Targets = append(g.Targets, miss.Target)
	}
	return groups
}
