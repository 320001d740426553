package runs

import (
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The kinds of the JSON, which distinguish it from the export of a run. Programs that read the report of one run need no lists by run, so a
// report of several runs has a kind of its own.
const (
	SingleKind = "touchstone-report"
	JointKind  = "touchstone-joint-report"
)

// dataVersion is the version of both kinds. It is raised when a field changes its meaning or goes away; a new field does not raise it.
const dataVersion = 1

// Data is the JSON of a report of one run: the numbers and statements of the other formats. It is not the run: raw samples, phases of trials
// and the activity of the host are in the export.
type Data struct {
	headData
	Run        runData           `json:"run" doc:"The facts of the run."`
	Method     methodData        `json:"method" doc:"The meaning of the numbers."`
	Scorecard  []dimensionData   `json:"scorecard,omitempty" doc:"The cost of each target by dimension; absent if the run measured fewer than two dimensions."`
	Findings   findingsData      `json:"findings" doc:"The findings in sentences."`
	Targets    []result.Target   `json:"targets" doc:"The targets of the run as they were found."`
	Benchmarks []benchmarkData   `json:"benchmarks" doc:"The benchmarks with a trial. A benchmark that every target skipped is in not_measured."`
	Traces     []analysis.Traced `json:"traces,omitempty" doc:"The counts of traced trials, which are in no other number; absent without one."`
	gapsData
}

// JointData is the JSON of a report of several runs. It has each run once. Other parts refer to a run by its place in runs.
type JointData struct {
	headData
	Absolute       string               `json:"absolute_values" doc:"A sentence about the comparison of absolute values."`
	AcrossMachines bool                 `json:"across_machines" doc:"Set if absolute values are compared (--across-machines)."`
	Machines       []analysis.Machine   `json:"machines" doc:"The machines."`
	Runs           []jointRunData       `json:"runs" doc:"The runs, machine by machine."`
	Facts          []factData           `json:"facts" doc:"Facts of machines and runs."`
	Versions       []factData           `json:"versions" doc:"The targets of all runs with their versions."`
	Findings       jointFindingsData    `json:"findings" doc:"The findings of the runs together, in sentences."`
	Benchmarks     []jointBenchmarkData `json:"benchmarks" doc:"The benchmarks of all runs."`
	Coverage       []coverageData       `json:"coverage" doc:"The extent of each benchmark in each run, also without a number."`
}

type (
	headData struct {
		Version   int                `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
		Kind      string             `json:"kind" doc:"Kind of the document."`
		Emulation *finding.Emulation `json:"emulation,omitempty" doc:"The runs of machines whose CPU is emulated, or may be; absent without one. Their figures of speed mislead."`
	}
	runData struct {
		ID       string                `json:"id" schema:"minLength=1" doc:"Unique name of the run."`
		Name     string                `json:"name" doc:"Name that the plan gives."`
		State    result.State          `json:"state" doc:"The progress of the run."`
		Started  time.Time             `json:"started" doc:"Wall-clock time of the start."`
		Ended    time.Time             `json:"ended,omitzero" doc:"The start plus the duration by a monotonic clock; absent if the run has not ended. In a resumed run the duration counts from the time of day of its resumption."`
		Tool     result.Tool           `json:"tool" doc:"The program that made the run."`
		Seed     uint64                `json:"seed,string" schema:"pattern=^[0-9]{1,20}$" doc:"Seed of the order of the trials; a string, because many readers keep only 53 bits of a number."`
		Baseline string                `json:"baseline" doc:"Target that the others are compared with."`
		Host     result.Host           `json:"host" doc:"The machine."`
		Overhead result.Overhead       `json:"overhead" doc:"Touchstone's own cost."`
		Self     document.Decimal      `json:"self_cpu_share" schema:"type=number" doc:"Touchstone's own CPU time as a share of the time of all trials."`
		Images   []result.Image        `json:"images,omitempty" doc:"The images that programs come from; absent without one."`
		Caveats  []string              `json:"caveats,omitempty" doc:"Sentences about things that were not measured or could not be held constant."`
		Stopping *result.Stopping      `json:"stopping,omitempty" doc:"The rule that stops single cells while the run goes on; absent in runs without one."`
		Trials   map[result.Status]int `json:"trials" doc:"Number of trials without warm-up by their outcome."`
		Warmup   int                   `json:"warmup_trials" doc:"Number of warm-up trials."`
	}
	methodData struct {
		Seed        string           `json:"seed" schema:"pattern=^[0-9]{1,20}$" doc:"Seed of the permutation tests, and of the resamples for detectable."`
		Interval    float64          `json:"interval" doc:"Coverage of intervals, as a share."`
		Alpha       float64          `json:"family_alpha" doc:"Probability of a false verdict in a family."`
		Power       float64          `json:"detectable_power" doc:"Power (0 to 1) that detectable is for."`
		MinEffect   float64          `json:"min_effect,omitzero" schema:"exclusiveMinimum=0" doc:"Largest relative difference that does not matter (--min-effect): 0.03 is 3 %; absent without one."`
		MinSamples  int              `json:"min_samples" doc:"Least number of blocks for an interval."`
		Family      string           `json:"family" doc:"The comparisons that are judged together."`
		Families    int              `json:"families" doc:"Number of families in the run."`
		Comparisons int              `json:"comparisons" doc:"Number of comparisons in the families."`
		Together    int              `json:"all_comparisons" doc:"Number of comparisons with a p-value, which differences_over_all_comparisons holds over."`
		Differences int              `json:"differences" doc:"Number of shown differences."`
		Everywhere  int              `json:"differences_over_all_comparisons" doc:"Number of those that hold over all comparisons of the run."`
		False       document.Decimal `json:"false_differences_to_expect" schema:"type=number;minimum=0" doc:"Number of families with a false difference to expect if nothing differs; not a whole number."`
		Withheld    int              `json:"withheld,omitempty" doc:"Number of comparisons without a verdict because the CPU is emulated; absent without one."`
		Ratio       string           `json:"ratio" doc:"Definition of every ratio to a baseline."`
	}
	dimensionData struct {
		Dimension result.Dimension `json:"dimension" doc:"The dimension of the cost."`
		Goal      analysis.Goal    `json:"goal,omitempty" doc:"The criterion of the ideal state (sateri, section 3.2); absent without one."`
		Targets   []scoreData      `json:"targets" doc:"The score of each target, without bare metal: the worst metric of the dimension, by its verdict and then by its cost."`
	}
	// scoreData is one dimension on one target: the worst metric, by its verdict and then by its cost.
	scoreData struct {
		Target  string                `json:"target" doc:"Name of the target."`
		Verdict analysis.ScoreVerdict `json:"verdict,omitempty" doc:"The judgement of the goal; absent for a value without a goal."`
		*scoreValueData
		*scoreRatioData
		*scoreMemoryData
	}
	scoreValueData struct {
		analysis.Key
		Metric   string             `json:"metric" doc:"Name of the metric."`
		Unit     result.Unit        `json:"unit" doc:"Unit of the metric."`
		Metrics  int                `json:"metrics" schema:"minimum=1" doc:"Number of metrics of the dimension with a value on the target."`
		Lacking  int                `json:"metrics_without_a_value,omitempty" doc:"Number of metrics of the dimension with a value on other targets only; absent without one."`
		Text     string             `json:"text" doc:"The score as reports spell it."`
		Median   document.Decimal   `json:"median" doc:"Median of the metric on the target, in its unit."`
		Interval *document.Interval `json:"interval,omitempty" doc:"95 % interval of the median, in the unit of the metric."`
	}
	scoreRatioData struct {
		Baseline string             `json:"baseline" doc:"Target of the ratio: bare metal if it has values of the metric, else the baseline of the benchmark."`
		Ratio    document.Decimal   `json:"ratio" doc:"Typical value of target / baseline within blocks, the estimate of Hodges and Lehmann."`
		Interval *document.Interval `json:"ratio_interval,omitempty" doc:"95 % interval of the ratio."`
	}
	scoreMemoryData struct {
		Overhead document.Decimal   `json:"overhead" doc:"Memory overhead in bytes: the median over blocks of target - native (sateri 5.4)."`
		Interval *document.Interval `json:"overhead_interval,omitempty" doc:"95 % interval of the overhead, in bytes."`
		Share    document.Decimal   `json:"share_of_memory" schema:"type=number" doc:"The overhead as a share of the machine's memory."`
	}
	findingsData struct {
		Breaches []breachData `json:"broken_bounds,omitempty" doc:"Medians that exceed the bound of their metric; absent without one."`
		Answers  []answerData `json:"answers,omitempty" doc:"The answers to the usual questions about a run; absent without comparisons."`
		Open     []string     `json:"open,omitempty" doc:"Goals of the scorecard without a verdict, and dimensions without a value; absent without a scorecard."`
		statementsData
		NotMeasured string `json:"not_measured,omitempty" doc:"The gaps by reason; absent without one."`
	}
	// answerData is an answer with its evidence.
	answerData struct {
		Name       string          `json:"name" doc:"The subject: Runtimes, Engines, Targets, Cost, Added, Safer, Undecided or No answer."`
		Text       string          `json:"text" doc:"The answer in a sentence."`
		Benchmarks []analysis.Key  `json:"benchmarks" doc:"Benchmarks with the evidence."`
		Claims     []finding.Claim `json:"claims" doc:"The orders of two targets that the text states as shown, all of them as one family of comparisons."`
	}
	jointFindingsData struct {
		Breaches []string `json:"broken_bounds,omitempty" doc:"The bounds that do not hold, with their runs; absent if all hold."`
		Opposite []string `json:"opposite" doc:"Targets that are better than the baseline in one run and worse in another."`
		statementsData
	}
	statementsData struct {
		Statements  []string `json:"statements" doc:"The largest differences from the baseline."`
		Comparisons string   `json:"comparisons,omitempty" doc:"Numbers of comparisons by verdict, or of several runs their agreement; absent without comparisons."`
		Withheld    string   `json:"withheld,omitempty" doc:"The comparisons without a verdict because a CPU is emulated; absent without one."`
		Failures    []string `json:"failures,omitempty" doc:"The shares of failed calls by target; absent if no call failed."`
	}
	// breachData is a median beyond the bound of its metric.
	breachData struct {
		analysis.Key
		Target string           `json:"target" doc:"Name of the target."`
		Metric string           `json:"metric" doc:"Name of the metric."`
		Unit   result.Unit      `json:"unit" doc:"Unit of median and most."`
		Median document.Decimal `json:"median" doc:"The median, in unit."`
		Most   float64          `json:"most" doc:"The bound, in unit."`
		Trials int              `json:"trials" doc:"Number of trials behind the median."`
		Doubt  string           `json:"doubt,omitempty" doc:"The reason why it may be chance; absent if it is clear."`
		Text   string           `json:"text" doc:"The same in a sentence."`
	}
	// gapsData has the missing numbers of a run and the reasons to trust the others less. The trials of a benchmark that every target skipped are
	// in without_a_number too.
	gapsData struct {
		Missing    []analysis.Missing     `json:"without_a_number" doc:"Cells with trials that did not end well."`
		Calls      []analysis.FailedCalls `json:"failed_calls,omitempty" doc:"Calls of the engines that failed, over the whole run; absent without one."`
		Unmeasured []analysis.Unmeasured  `json:"not_measured,omitempty" doc:"Benchmarks that every target skipped; absent without one."`
		Warnings   []finding.WarningGroup `json:"warnings" doc:"Reasons to trust numbers of the run less."`
	}
)

// data is the report for JSON. An unknown value is null or absent, never zero.
func data(r *report.Report) any {
	head := headData{dataVersion, JointKind, finding.EmulationOf(r.Analysis)}
	if len(r.Runs) > 1 {
		return newJointData(r, head)
	}
	run, f := &r.Runs[0], &r.Findings
	head.Kind = SingleKind
	return Data{
		headData: head, Run: newRunData(run), Method: newMethodData(r, run), Scorecard: newScorecardData(&run.Scorecard), Targets: recordedTargets(run),
		Findings:   findingsData{breaches(r, 0), newAnswersData(f.Answers), f.Open, newStatementsData(f), strings.Join(f.NotMeasured, "; ")},
		Benchmarks: lists.Convert(r.Benchmarks(), newBenchmarkData), Traces: run.Traced(), gapsData: newGapsData(run, r.Warnings[0]),
	}
}

func newAnswersData(answers []finding.Answer) []answerData {
	return lists.Convert(answers, func(a *finding.Answer) answerData {
		return answerData{a.Name, a.Text, a.Benchmarks, append([]finding.Claim{}, a.Claims...)}
	})
}

// list is a list that is not nil.
func list(items []string) []string { return append([]string{}, items...) }

func recordedTargets(r *analysis.Run) []result.Target {
	return lists.Convert(r.Targets, func(t *analysis.Target) result.Target { return t.Target })
}

func newStatementsData(f *finding.Findings) statementsData {
	return statementsData{list(f.Statements), f.Comparisons, f.Withheld, f.Failures}
}

func newRunData(r *analysis.Run) runData {
	return runData{
		ID: r.ID, Name: r.Name, State: r.State, Started: r.Started.UTC(), Ended: r.Ended.UTC(), Tool: r.Tool, Seed: r.Seed, Baseline: r.Baseline, Host: r.Host, Overhead: r.Overhead,
		Self: document.Decimal(r.Self), Images: r.Images, Caveats: r.Caveats, Stopping: r.Stopping, Trials: r.Counts, Warmup: r.Warmup,
	}
}

func newMethodData(source *report.Report, r *analysis.Run) methodData {
	return methodData{
		Seed: strconv.FormatUint(r.Seed, 10), Interval: stats.Level, Alpha: stats.Alpha, Power: stats.Power, MinEffect: source.MinEffect, MinSamples: stats.MinSamples,
		Family: "all targets against the baseline on one metric of one benchmark", Families: r.Families, Comparisons: r.Comparisons, Together: r.Together,
		Differences: r.Differences, Everywhere: r.Everywhere, False: document.Decimal(stats.Alpha * float64(r.Families)), Withheld: r.Withheld,
		Ratio: "Hodges-Lehmann estimate of target / baseline within blocks; overhead is |ratio - 1|",
	}
}

// newScorecardData lists the dimensions with a value on some target.
func newScorecardData(c *analysis.Scorecard) []dimensionData {
	var rows []dimensionData
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Unmeasured() {
			continue
		}
		row := dimensionData{Dimension: r.Dimension, Goal: r.Goal}
		for n := range r.Scores {
			row.Targets = append(row.Targets, newScoreData(c.Targets[n], &r.Scores[n]))
		}
		rows = append(rows, row)
	}
	return rows
}

func newScoreData(target string, s *analysis.Score) scoreData {
	d := scoreData{Target: target, Verdict: s.Verdict}
	if s.Value == nil {
		return d
	}
	d.scoreValueData = &scoreValueData{
		s.Benchmark, s.Metric.Name, s.Metric.Unit, s.Metrics, s.Lacking, finding.Score(s), document.Decimal(s.Value.Median), document.IntervalOf(s.Value.CI),
	}
	if c := s.Comparison; c != nil {
		d.scoreRatioData = &scoreRatioData{s.Baseline, document.Decimal(c.Ratio), document.IntervalOf(c.CI)}
	}
	if m := s.Memory; m != nil {
		d.scoreMemoryData = &scoreMemoryData{document.Decimal(m.Median), document.IntervalOf(m.CI), document.Decimal(s.Share)}
	}
	return d
}

func breaches(r *report.Report, run int) []breachData {
	var found []breachData
	for _, bench := range r.Benchmarks() {
		if s := bench.Sections[run]; s != nil {
			found = append(found, lists.Convert(s.Breaches, func(b *analysis.Breach) breachData {
				return breachData{b.Key, b.Target, b.Metric.Name, b.Metric.Unit, document.Decimal(b.Median), b.Metric.Bound.Most, b.Trials, b.Doubt, finding.Breach(b)}
			})...)
		}
	}
	return found
}

func newGapsData(r *analysis.Run, warnings []finding.WarningGroup) gapsData {
	return gapsData{append([]analysis.Missing{}, r.Missing...), r.FailedCalls, r.Unmeasured, append([]finding.WarningGroup{}, warnings...)}
}

func newFactData(f *fact.Row) factData { return factData{f.Name(), *f} }
