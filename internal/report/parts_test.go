package report_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/quantity"
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
		{"fast path", stats.Comparison{Verdict: stats.Slower, By: stats.LowestQuarter, Parts: parts}, "lowest quarter 1.07 ×"},
		{"mixed", stats.Comparison{Verdict: stats.Mixed, By: stats.LowestQuarter, Parts: parts}, "lowest quarter 1.07 ×, highest quarter 0.800 ×"},
		{"typical", stats.Comparison{Verdict: stats.Slower, By: stats.Typical, Parts: parts}, ""},
		{"none", stats.Comparison{Verdict: stats.NoDifference, Parts: parts}, ""},
	} {
		if got := quantity.Parts(&tt.of, m, quantity.Cost); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestBesideText(t *testing.T) {
	m := result.Metric{Unit: result.Seconds, Better: result.Lower}
	two := &stats.Summary{Warnings: []stats.Warning{{Kind: stats.Bimodal}}}
	build := func(means float64, interval *stats.Interval) *stats.Comparison {
		return &stats.Comparison{N: 60, Ratio: 1.02, Verdict: stats.Slower, Means: means, MeansCI: interval, Shift: []float64{1.01, 1.3}}
	}
	for _, tt := range []struct {
		name  string
		of    *stats.Comparison
		sides []*stats.Summary
		want  string
	}{
		{"another mean", build(1.3, &stats.Interval{Lo: 1.2, Hi: 1.4}), nil, "mean 1.30 × (1.20 to 1.40)"},
		{"a mean in the other direction", build(0.8, &stats.Interval{Lo: 0.5, Hi: 0.9}), nil, "mean 0.800 × (0.500 to 0.900)"},
		{"the same mean", build(1.03, &stats.Interval{Lo: 1.01, Hi: 1.05}), nil, ""},
		{"too few values for an interval", build(1.3, nil), nil, ""},
		{"two groups", build(1.03, &stats.Interval{Lo: 1.01, Hi: 1.05}), []*stats.Summary{nil, two}, "costs of the deciles 1.01, 1.30"},
		{"both", build(1.3, &stats.Interval{Lo: 1.2, Hi: 1.4}), []*stats.Summary{two}, "mean 1.30 × (1.20 to 1.40); costs of the deciles 1.01, 1.30"},
		{"two groups with the same difference", &stats.Comparison{N: 60, Ratio: 1.02, Verdict: stats.Slower, Shift: []float64{1.01, 1.2}}, []*stats.Summary{two}, ""},
		{"no comparison", nil, []*stats.Summary{two}, ""},
	} {
		if got := quantity.Details(tt.of, m, tt.sides...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A table shows the cost in the deciding part, with the word of a shown difference alone, and names the part.
func TestShownCost(t *testing.T) {
	m := result.Metric{Unit: result.Seconds, Better: result.Lower}
	parts := []stats.PartDifference{
		{Part: stats.Typical, Ratio: 0.99, Adjusted: 0.6},
		{Part: stats.AllValues, Ratio: 1.07, Adjusted: 0.001},
		{Part: stats.HighestQuarter, Ratio: 0.8, Adjusted: 0.01},
	}
	for _, tt := range []struct {
		name       string
		verdict    stats.Verdict
		by         stats.Part
		cost, part string
	}{
		{"another part", stats.Slower, stats.AllValues, "1.07 ×, slower", "all values"},
		{"typical", stats.Faster, stats.Typical, "0.990 ×, faster", ""},
		{"mixed", stats.Mixed, stats.AllValues, "0.990 ×", "all values 1.07 ×, highest quarter 0.800 ×"},
		{"none", stats.NoDifference, "", "0.990 ×", ""},
	} {
		c := stats.Comparison{N: 60, Ratio: 0.99, CI: &stats.Interval{Lo: 0.98, Hi: 1.01}, Verdict: tt.verdict, By: tt.by, Parts: parts}
		if cost, part := quantity.DecidingCost(&c, m), quantity.DecidingPart(&c, m); cost != tt.cost || part != tt.part {
			t.Errorf("%s: %q by %q, want %q by %q", tt.name, cost, part, tt.cost, tt.part)
		}
	}
}
