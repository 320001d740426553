package analysis

import (
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// EmulatedScore is the verdict of a scorecard on a goal of speed on an emulated CPU.
const EmulatedScore ScoreVerdict = "emulated"

// judge judges a family, or withholds its verdicts.
func judge(family []stats.Comparison, withhold bool, margin float64) []stats.Comparison {
	if !withhold {
		return stats.Judge(family, stats.Alpha, margin)
	}
	var comparisons []stats.Comparison
	for _, c := range family {
		comparisons = append(comparisons, c.Withhold())
	}
	return comparisons
}

// noVerdictOf explains a missing verdict in a few words.
func noVerdictOf(run *result.Run) string {
	if run.Host.Nature() == result.Emulated {
		return "no verdict, because the CPU is emulated"
	}
	return "no verdict, because the CPU may be emulated"
}

// AnyWithheld reports whether some run has comparisons without a verdict because of an emulated CPU.
func (a *Analysis) AnyWithheld() bool {
	for i := range a.Runs {
		if a.Runs[i].Withheld > 0 {
			return true
		}
	}
	return false
}
