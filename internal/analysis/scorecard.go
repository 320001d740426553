package analysis

import (
	"cmp"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
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

// Unmeasured reports whether no target has a value.
func (r *ScoreRow) Unmeasured() bool {
	return !slices.ContainsFunc(r.Scores, func(s Score) bool { return s.Value != nil })
}

// Compared reports whether the score has a ratio.
func (s *Score) Compared() bool { return s.Comparison != nil && finite(s.Comparison.Ratio) }

// IsFactor reports whether the score is a factor and not a value.
func (s *Score) IsFactor() bool { return goalOf(s.Metric.Dimension) == SpeedGoal && s.Compared() }

// leastDimensions is the smallest number of dimensions in a scorecard. The table of a single benchmark says more than one row.
const leastDimensions = 2

// scorecard makes the scorecard of a run. It is empty if the run measured fewer than leastDimensions.
func (a *Analysis) scorecard(run int) Scorecard {
	var card Scorecard
	r := &a.Runs[run]
	scores, metrics, bare := a.scores(run)
	for _, t := range r.Targets {
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
			row.Scores = append(row.Scores, combine(lists.Filter(scores, func(s scored) bool { return s.target == target && s.Metric.Dimension == d }), metrics[d]))
		}
		card.Rows = append(card.Rows, row)
	}
	return card
}

// combine makes the score of a dimension from the scores of its metrics. metrics is the number of metrics that the run measured.
func combine(scores []scored, metrics int) Score {
	if len(scores) == 0 {
		return Score{Verdict: NotMeasured}
	}
	rank := []ScoreVerdict{Missed, NotShown, EmulatedScore, Met, NoVerdict}
	worst := slices.MinFunc(scores, func(a, b scored) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.Verdict), slices.Index(rank, b.Verdict)), cmp.Compare(b.cost, a.cost))
	})
	worst.Metrics, worst.Lacking = len(scores), metrics-len(scores)
	if worst.Verdict == Met && worst.Lacking > 0 {
		worst.Verdict = NotShown
	}
	return worst.Score
}
