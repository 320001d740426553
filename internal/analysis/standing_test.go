package analysis

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// A part decides a difference only in one direction, and only if the typical value does not.
func TestOfPart(t *testing.T) {
	for _, c := range []struct {
		comparison *stats.Comparison
		want       bool
	}{
		{&stats.Comparison{Verdict: stats.Slower, By: stats.HighestQuarter}, true},
		{&stats.Comparison{Verdict: stats.Faster, By: stats.Typical}, false},
		{&stats.Comparison{Verdict: stats.Mixed, By: stats.LowestQuarter}, false},
		{&stats.Comparison{Verdict: stats.NoDifference}, false},
		{nil, false},
	} {
		if got := OfPart(c.comparison); got != c.want {
			t.Errorf("a part decides %+v: %t, want %t", c.comparison, got, c.want)
		}
	}
}
