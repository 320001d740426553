package finding

import (
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// ScorecardNote explains a scorecard.
const ScorecardNote = "A score compares a target with bare metal, unless it names another target, and has its 95 % interval. If a dimension has several " +
	"metrics, the score is the worst one: a missed goal comes first, then a goal that is not shown, then the largest cost. The goals are the ideal state " +
	"of sateri, section 3.2. Met needs a value of every metric, with its interval within the goal. Missed needs one interval beyond it and a shown difference. " +
	"A target that has lost more than 5 % of its trials meets no goal."

// ScoreSources names the source of each score of a row, with its targets if they differ: "performance.cpu.time, TotalTime (oci/runc); …".
func ScoreSources(c *analysis.Scorecard, r *analysis.ScoreRow) string {
	type source struct {
		name    string
		targets []string
	}
	var sources []source
	for i := range r.Scores {
		if name := ScoreSource(&r.Scores[i]); name != "" {
			s := lists.Place(&sources, func(s *source) bool { return s.name == name }, source{name: name})
			s.targets = append(s.targets, c.Targets[i])
		}
	}
	var parts []string
	for _, s := range sources {
		if len(sources) == 1 {
			return s.name
		}
		parts = append(parts, s.name+" ("+strings.Join(s.targets, ", ")+")")
	}
	return strings.Join(parts, "; ")
}

// Score spells a score: a cost for a goal of speed, else the value with its cost.
func Score(s *analysis.Score) string {
	switch {
	case s.Value == nil:
		return string(s.Verdict)
	case s.Memory != nil:
		return fmt.Sprintf("%s (%s)", quantity.Signed(s.Memory.Median, result.Bytes), quantity.TrueMinus(quantity.Percent(s.Share)))
	case !s.Compared():
		return quantity.Text(s.Value.Median, s.Metric.Unit)
	}
	cost := quantity.Cost(s.Comparison.Ratio, s.Metric)
	if !s.Bare {
		cost += " " + s.Baseline
	}
	// A goal has its own verdict. Beside a value the cost is shown unless its verdict follows.
	if isShown := s.Comparison.Differs(); s.IsFactor() && isShown && !analysis.OfPart(s.Comparison) || !s.IsFactor() && !isShown {
		cost += ", " + quantity.CostWord(s.Comparison.Verdict, s.Metric)
	}
	if s.IsFactor() {
		return cost
	}
	return fmt.Sprintf("%s (%s)", quantity.Text(s.Value.Median, s.Metric.Unit), cost)
}

// ScoreInterval spells the 95 % interval of the number that [Score] begins with, or None.
func ScoreInterval(s *analysis.Score) string {
	ci, unit := (*stats.Interval)(nil), s.Metric.Unit
	switch {
	case s.Value == nil:
	case s.Memory != nil:
		ci, unit = s.Memory.CI, result.Bytes
	case s.IsFactor():
		return quantity.CostInterval(s.Comparison.CI, s.Metric)
	default:
		ci = s.Value.CI
	}
	if ci == nil {
		return quantity.None
	}
	return quantity.Range(ci.Lo, ci.Hi, unit)
}

// ScoreSource names the benchmark and the metric of the score, and the number of metrics without a value.
func ScoreSource(s *analysis.Score) string {
	if s.Value == nil {
		return ""
	}
	source := s.Benchmark.Title() + ", " + s.Metric.Name
	if s.Lacking > 0 {
		source += fmt.Sprintf(", with no value of %d of %s", s.Lacking, wording.Counted(s.Metrics+s.Lacking, "metric"))
	}
	return source
}
