package report_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// A difference of another part than the typical value is named, and a mixed one has all its parts.
func TestPartOf(t *testing.T) {
	m := result.Metric{Unit: result.Seconds, Better: result.Lower}
	parts := []stats.PartDifference{
		{Part: stats.Typical, Ratio: 0.99, Adjusted: 0.6},
		{Part: stats.LowestQuarter, Ratio: 1.07, Adjusted: 0.001},
		{Part: stats.LowerHalf, Ratio: 1.01, Adjusted: 0.2},
		{Part: stats.HighestQuarter, Ratio: 0.8, Adjusted: 0.01},
	}
	for _, tt := range []struct {
		name string
		of   stats.Comparison
		want string
	}{
		{"fast path", stats.Comparison{Verdict: stats.Slower, By: stats.LowestQuarter, Parts: parts}, "lowest quarter 1.07 × slower"},
		{"mixed", stats.Comparison{Verdict: stats.Mixed, By: stats.LowestQuarter, Parts: parts}, "lowest quarter 1.07 × slower, highest quarter 1.25 × faster"},
		{"typical", stats.Comparison{Verdict: stats.Slower, By: stats.Typical, Parts: parts}, ""},
		{"none", stats.Comparison{Verdict: stats.NoDifference, Parts: parts}, ""},
	} {
		if got := report.PartOf(&tt.of, m); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
