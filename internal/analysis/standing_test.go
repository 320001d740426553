package analysis

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// A difference of a part has the factor of that part, because the typical value may not differ. The interval is of the typical value alone.
func TestCostOfAPart(t *testing.T) {
	parts := []stats.PartDifference{{Part: stats.Typical, Ratio: 1.01}, {Part: stats.HighestQuarter, Ratio: 1.6}}
	for _, c := range []struct {
		better  result.Direction
		verdict stats.Verdict
		by      stats.Part
		cost    float64
		bounded bool
	}{
		{result.Lower, stats.Slower, stats.HighestQuarter, 1.6, false},
		{result.Higher, stats.Faster, stats.HighestQuarter, 1 / 1.6, false},
		{result.Lower, stats.Slower, stats.Typical, 1.01, true},
		{result.Lower, stats.NoDifference, "", 1.01, true},
	} {
		s := Standing{Metric: &Metric{Metric: result.Metric{Better: c.better}}}
		comparison := stats.Comparison{Ratio: 1.01, CI: &stats.Interval{Lo: 0.9, Hi: 1.2}, Parts: parts, Verdict: c.verdict, By: c.by}
		if cost, interval := s.Cost(&comparison); cost != c.cost || (interval != nil) != c.bounded {
			t.Errorf("%s by the %q costs %v with the interval %v, want %v, with an interval: %t", c.verdict, c.by, cost, interval, c.cost, c.bounded)
		}
	}
}
