package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// The ideal state of a runtime (sateri, section 3.2): a program has at least 95 % of its native speed, and a container takes at
// most 1 % of the machine's memory.
const (
	idealSpeed  = 0.95
	idealMemory = 0.01
)

// Goal is the criterion of the ideal state for a dimension. Dimensions without a criterion have values and no verdict.
type Goal string

// The goals.
const (
	NoGoal     Goal = ""
	SpeedGoal  Goal = "≥ 95 % of native speed"
	MemoryGoal Goal = "≤ 1 % of memory"
)

func goalOf(d result.Dimension) Goal {
	switch d {
	case result.DimensionCPU, result.DimensionMemorySpeed, result.DimensionDisk, result.DimensionNetwork, result.DimensionSystemCalls:
		return SpeedGoal
	case result.DimensionMemoryOverhead:
		return MemoryGoal
	case result.DimensionStartUp, result.DimensionDensity, result.DimensionIsolation, result.DimensionFootprint:
	}
	return NoGoal
}

// ScoreVerdict is the verdict on a goal.
type ScoreVerdict string

// The verdicts of a scorecard.
const (
	// Met means that every metric of the dimension has a value, and its whole interval is within the goal.
	Met ScoreVerdict = "met"
	// Missed means that a metric has a shown difference, and its whole interval is beyond the goal.
	Missed ScoreVerdict = "missed"
	// NotShown means that there are values, and they show neither: they are uncertain, one of them is missing, or bare metal has none.
	NotShown ScoreVerdict = "not shown"
	// NotMeasured means that the run has no value.
	NotMeasured ScoreVerdict = "not measured"
	// NoVerdict is the verdict on a value without a goal.
	NoVerdict ScoreVerdict = ""
)

// Scorecard is the cost of each target of one run by dimension, after sateri, chapter 5.
//
// A dimension may have several metrics. The score of a target is then its worst metric: the worst verdict decides, then the largest
// cost. A runtime that computes fast and decodes slowly has no fast CPU. No family is corrected a second time. A missed goal needs the verdict of the metric's own
// family, and a met goal needs every interval within the goal, which an intersection-union test allows without a correction
// (R. L. Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 24 (1982) 295–300).
type Scorecard struct {
	// Targets are the columns: the targets of the run with a value, without bare metal.
	Targets []string
	Rows    []ScoreRow
}

// ScoreRow is one dimension on all targets.
type ScoreRow struct {
	Dimension result.Dimension
	Goal      Goal
	Scores    []Score // by target
	// OnBareMetal reports whether bare metal has a value.
	OnBareMetal bool
}

// Score is one dimension on one target. Without a value only Verdict is set.
type Score struct {
	Verdict ScoreVerdict
	// Benchmark and Metric are the source of the score.
	Benchmark Key
	Metric    result.Metric
	Value     *stats.Summary
	// Comparison is the comparison with Baseline: bare metal if it has values of the metric, else the baseline of the benchmark. It
	// is nil without one. Bare reports whether the score is against bare metal.
	Comparison *stats.Comparison
	Baseline   string
	Bare       bool
	// Memory is the memory overhead, runtime − native (sateri 5.4), in bytes, and Share is its share of the machine's memory.
	// Memory is nil in other dimensions.
	Memory *stats.Difference
	Share  float64
	// TrialsLost is set if the verdict is missing because the target or bare metal has lost trials.
	TrialsLost bool
	// Metrics is the number of metrics of the dimension with a value on the target, Lacking the number of metrics with a value on
	// other targets only.
	Metrics, Lacking int
}

// ScorecardNote explains a scorecard.
const ScorecardNote = "A score compares a target with bare metal, unless it names another target, and has its 95 % interval. If a dimension has several " +
	"metrics, the score is the worst one: a missed goal comes first, then a goal that is not shown, then the largest cost. The goals are the ideal state " +
	"of sateri, section 3.2. Met needs a value of every metric, with its interval within the goal. Missed needs one interval beyond it and a shown difference. " +
	"A target that has lost more than 5 % of its trials meets no goal."

// Unmeasured reports whether no target has a value.
func (r *ScoreRow) Unmeasured() bool {
	return !slices.ContainsFunc(r.Scores, func(s Score) bool { return s.Value != nil })
}

// Sources names the source of each score of a row, with its targets if they differ: "performance.cpu.time, TotalTime (oci/runc); …".
func (c *Scorecard) Sources(r *ScoreRow) string {
	type source struct {
		name    string
		targets []string
	}
	var all []source
	for i := range r.Scores {
		if name := r.Scores[i].Source(); name != "" {
			s := place(&all, func(s *source) bool { return s.name == name }, source{name: name})
			s.targets = append(s.targets, c.Targets[i])
		}
	}
	var parts []string
	for _, s := range all {
		if len(all) == 1 {
			return s.name
		}
		parts = append(parts, s.name+" ("+strings.Join(s.targets, ", ")+")")
	}
	return strings.Join(parts, "; ")
}

// Text spells the score: a factor for a goal of speed, else the value with its factor.
func (s *Score) Text() string {
	switch {
	case s.Value == nil:
		return string(s.Verdict)
	case s.Memory != nil:
		return fmt.Sprintf("%s (%s)", quantity.Signed(s.Memory.Median, result.Bytes), quantity.TrueMinus(quantity.Percent(s.Share)))
	case !s.compared():
		return quantity.Text(s.Value.Median, s.Metric.Unit)
	}
	factor := quantity.Ratio(s.Comparison, s.Metric)
	if !s.Bare {
		factor = quantity.AddBaseline(factor, s.Baseline)
	}
	if s.isFactor() {
		return factor
	}
	if !s.Comparison.Differs() {
		factor += ", " + quantity.VerdictWord(s.Comparison.Verdict, s.Metric)
	}
	return fmt.Sprintf("%s (%s)", quantity.Text(s.Value.Median, s.Metric.Unit), factor)
}

// Interval spells the 95 % interval of the number that Text begins with, or None.
func (s *Score) Interval() string {
	ci, unit := (*stats.Interval)(nil), s.Metric.Unit
	switch {
	case s.Value == nil:
	case s.Memory != nil:
		ci, unit = s.Memory.CI, result.Bytes
	case s.isFactor():
		return quantity.FactorInterval(s.Comparison)
	default:
		ci = s.Value.CI
	}
	if ci == nil {
		return quantity.None
	}
	return quantity.Range(ci.Lo, ci.Hi, unit)
}

// compared reports whether the score has a ratio.
func (s *Score) compared() bool { return s.Comparison != nil && finite(s.Comparison.Ratio) }

// isFactor reports whether the score is a factor and not a value.
func (s *Score) isFactor() bool { return goalOf(s.Metric.Dimension) == SpeedGoal && s.compared() }

// Source names the benchmark and the metric of the score, and the number of metrics without a value.
func (s *Score) Source() string {
	if s.Value == nil {
		return ""
	}
	source := s.Benchmark.Title() + ", " + s.Metric.Name
	if s.Lacking > 0 {
		source += fmt.Sprintf(", with no value of %d of %s", s.Lacking, quantity.Counted(s.Metrics+s.Lacking, "metric"))
	}
	return source
}

// leastDimensions is the smallest number of dimensions in a scorecard. The table of a single benchmark says more than one row.
const leastDimensions = 2

// scorecard makes the scorecard of a run. It is empty if the run measured fewer than leastDimensions.
func (r *Report) scorecard(run int) Scorecard {
	var card Scorecard
	of := &r.Runs[run]
	scores, metrics, bare := r.scores(run)
	for _, t := range of.Targets {
		if t.Kind != result.KindNative && slices.ContainsFunc(scores, func(s scored) bool { return s.target == t.Name }) {
			card.Targets = append(card.Targets, t.Name)
		}
	}
	if card.Targets == nil || len(metrics) < leastDimensions {
		return Scorecard{}
	}
	for _, d := range result.Dimensions() {
		row := ScoreRow{Dimension: d, Goal: goalOf(d), OnBareMetal: bare[d]}
		for _, target := range card.Targets {
			row.Scores = append(row.Scores, combine(where(scores, func(s scored) bool { return s.target == target && s.Metric.Dimension == d }), metrics[d]))
		}
		card.Rows = append(card.Rows, row)
	}
	return card
}

// combine makes the score of a dimension from the scores of its metrics. metrics is the number of metrics that the run measured.
func combine(all []scored, metrics int) Score {
	if len(all) == 0 {
		return Score{Verdict: NotMeasured}
	}
	rank := []ScoreVerdict{Missed, NotShown, EmulatedScore, Met, NoVerdict}
	worst := slices.MinFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.Verdict), slices.Index(rank, b.Verdict)), cmp.Compare(b.cost, a.cost))
	})
	worst.Metrics, worst.Lacking = len(all), metrics-len(all)
	if worst.Verdict == Met && worst.Lacking > 0 {
		worst.Verdict = NotShown
	}
	return worst.Score
}
