package report_test

import (
	"math"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func trends(b measured) []*analysis.Metric { return (&analysis.Benchmark{Metrics: b.Metrics}).Trends() }

// A series with a trend has a slope on each target, and a knee only where two lines fit better.
func TestTrendOfSeries(t *testing.T) {
	b := benchmark(t, model(reporttest.UnderLoad()), reporttest.LoadBenchmark)
	if got := trends(b); len(got) != 1 || got[0].Name != "StartLatency" {
		t.Fatalf("Trends() = %v", got)
	}
	line := cell(t, b, "StartLatency", reporttest.LineTarget).Trend
	if line.N != 50 || !line.Shown() || line.Knee != nil || math.Abs(line.Slope-50e-6) > 10e-6 {
		t.Errorf("the trend of %s is %+v, want 50 µs per container", reporttest.LineTarget, line)
	}
	knee := cell(t, b, "StartLatency", reporttest.KneeTarget).Trend
	if k := knee.Knee; k == nil || k.At < 33 || k.At > 37 || math.Abs(k.After-4.1e-3) > 0.4e-3 {
		t.Errorf("the trend of %s is %+v with the knee %+v, want a knee at 35", reporttest.KneeTarget, knee, k)
	}
	if native := cell(t, b, "StartLatency", "native").Trend; native.Knee != nil {
		t.Errorf("native has the knee %+v", native.Knee)
	}
}

// Old runs have series without a trend, and short series have too few places.
func TestSeriesWithoutTrend(t *testing.T) {
	b := benchmark(t, model(reporttest.Sample()), "scalability.runtime.5")
	if c := cell(t, b, "StartLatency", "oci/runc"); c.Trend != nil || len(trends(b)) > 0 {
		t.Errorf("the trend of an old series is %+v", c.Trend)
	}
	run := reporttest.UnderLoad()
	for i := range run.Trials {
		if samples := run.Trials[i].Samples; len(samples) > 0 {
			run.Trials[i].Samples = samples[:stats.MinTrendPlaces-1]
		}
	}
	if b := benchmark(t, model(run), reporttest.LoadBenchmark); len(trends(b)) > 0 {
		t.Errorf("a series of %d places has a trend", stats.MinTrendPlaces-1)
	}
}

func TestTrendInWords(t *testing.T) {
	ci := &stats.Interval{Lo: 9e-6, Hi: 11e-6}
	knee := &stats.Knee{At: 41, Range: stats.Interval{Lo: 38, Hi: 44}, Before: 1e-6, After: 1e-3}
	for _, tt := range []struct {
		trend stats.Trend
		want  string
	}{
		{stats.Trend{N: 50, Slope: 10e-6, CI: ci}, "no knee shown"},
		{stats.Trend{N: 50, Slope: 0, CI: &stats.Interval{Lo: -1e-6, Hi: 1e-6}}, "no trend and no knee shown"},
		{stats.Trend{N: 12, Slope: 10e-6, CI: ci}, "no knee sought below 20 places"},
		{stats.Trend{N: 12, Slope: 0, CI: &stats.Interval{Lo: -1e-6, Hi: 1e-6}}, "no trend shown; no knee sought below 20 places"},
		{stats.Trend{N: 50, Slope: 10e-6, CI: ci, Knee: knee}, "knee at 41 (38 to 44): 1.00 µs before, 1.00 ms after"},
	} {
		if got := finding.TrendNote(&tt.trend, "s"); got != tt.want {
			t.Errorf("TrendNote(%+v) = %q, want %q", tt.trend, got, tt.want)
		}
		if got := quantity.Slope(&tt.trend, "s"); !strings.Contains(got, "±") || !strings.Contains(got, "µs") {
			t.Errorf("TrendSlope(%+v) = %q", tt.trend, got)
		}
	}
}
