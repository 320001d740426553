package quantity_test

import (
	"math"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  result.Unit
		want  string
	}{
		{60.4e-9, result.Seconds, "60.4 ns"},
		{0.5e-9, result.Seconds, "0.500 ns"},
		{21.34e-3, result.Seconds, "21.3 ms"},
		{999.6e-6, result.Seconds, "1.00 ms"}, // it is 1000 µs when rounded
		{999.4e-6, result.Seconds, "999 µs"},
		{9.996e-3, result.Seconds, "10.0 ms"},
		{1, result.Seconds, "1.00 s"},
		{1234.5, result.Seconds, "1234 s"},
		{0, result.Seconds, "0 s"},
		{-0.002, result.Seconds, "-2.00 ms"},
		{1023, result.Bytes, "1023 B"},
		{1024, result.Bytes, "1.00 KiB"},
		{13.5 * (1 << 20), result.Bytes, "13.5 MiB"},
		{24 << 30, result.Bytes, "24.0 GiB"},
		{8.1e9, result.BytesPerSecond, "8.10 GB/s"},
		{512, result.BytesPerSecond, "512 B/s"},
		{1.62e6, result.PerSecond, "1.62 M/s"},
		{15000, result.PerSecond, "15.0 k/s"},
		{7, result.PerSecond, "7.00/s"},
		{12345, result.Score, "12345"},
		{0.25, result.Score, "0.250"},
		{9.4e9, result.BitsPerSecond, "9.40 Gbit/s"},
		{4.4e10, result.FlopPerSecond, "44.0 GFLOP/s"},
		{0.951, result.Ratio, "95.1 %"},
		{0.0004, result.Ratio, "0.0400 %"},
		{0, result.Ratio, "0 %"},
		{1.98, result.Ratio, "198 %"},
		{9.994, result.Ratio, "999 %"},
		{9.996, result.Ratio, "10.0 ×"},
		{123.4, result.Ratio, "123 ×"},
		{math.NaN(), result.Seconds, quantity.None},
		{math.Inf(1), result.Bytes, quantity.None},
	} {
		if got := quantity.Text(c.value, c.unit); got != c.want {
			t.Errorf("Text(%v, %s) = %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestMedianHasTheLargerHalfOfItsInterval(t *testing.T) {
	s := &stats.Summary{Median: 0.0213, CI: &stats.Interval{Lo: 0.0212, Hi: 0.02172}}
	if got := quantity.Median(s, result.Seconds); got != "21.3 ± 0.42 ms" {
		t.Errorf("Median = %q", got)
	}
	s = &stats.Summary{Median: 0.0213, CI: &stats.Interval{Lo: 0.0113, Hi: 0.0214}}
	if got := quantity.Median(s, result.Seconds); got != "21.3 ± 10 ms" {
		t.Errorf("Median = %q", got)
	}
	if got := quantity.Median(&stats.Summary{Median: 0.0213}, result.Seconds); got != "21.3 ms" {
		t.Errorf("without an interval Median = %q", got)
	}
	if got := quantity.Median(nil, result.Seconds); got != quantity.None {
		t.Errorf("Median of nothing = %q", got)
	}
}

func TestVerdictWordFitsTheMetric(t *testing.T) {
	for _, c := range []struct {
		unit          result.Unit
		direction     result.Direction
		better, worse string
	}{
		{result.Seconds, result.Lower, "faster", "slower"},
		{result.Seconds, result.Higher, "more", "less"},
		{result.BytesPerSecond, result.Higher, "faster", "slower"},
		{result.PerSecond, result.Higher, "faster", "slower"},
		{result.PerSecond, result.Lower, "less", "more"}, // such as retransmits
		{result.Bytes, result.Lower, "less", "more"},
		{result.Bytes, result.Higher, "more", "less"},
		{result.Score, result.Higher, "better", "worse"},
		{result.Ratio, result.Lower, "better", "worse"},
		{result.BitsPerSecond, result.Higher, "faster", "slower"},
		{result.FlopPerSecond, result.Higher, "faster", "slower"},
	} {
		m := result.Metric{Unit: c.unit, Better: c.direction}
		consumed := result.Metric{Unit: result.Seconds, Better: result.Lower, Consumed: true}
		if w := quantity.VerdictWord(stats.Slower, consumed); w != "more" {
			t.Errorf("more CPU time is %q", w)
		}
		if b, w := quantity.VerdictWord(stats.Faster, m), quantity.VerdictWord(stats.Slower, m); b != c.better || w != c.worse {
			t.Errorf("for %s, %s is better, the words are %q and %q, want %q and %q", c.unit, c.direction, b, w, c.better, c.worse)
		}
		if got := quantity.VerdictWord(stats.NoDifference, m); got != "no difference shown" {
			t.Errorf("for %s no difference is %q", c.unit, got)
		}
	}
}

func TestFactorIsInTheDirectionOfTheDifference(t *testing.T) {
	time := result.Metric{Unit: result.Seconds, Better: result.Lower}
	rate := result.Metric{Unit: result.PerSecond, Better: result.Higher}
	for _, c := range []struct {
		ratio    float64
		ci       *stats.Interval
		metric   result.Metric
		factor   string
		interval string
	}{
		{152, &stats.Interval{Lo: 149, Hi: 155}, time, "152 × slower", "149 to 155"},
		{0.0066, &stats.Interval{Lo: 0.0065, Hi: 0.0067}, rate, "152 × slower", "149 to 154"},
		{0.5, &stats.Interval{Lo: 0.4, Hi: 0.625}, time, "2.00 × faster", "1.60 to 2.50"},
		{2, nil, rate, "2.00 × faster", quantity.None},
		{1.001, &stats.Interval{Lo: 0.98, Hi: 1.02}, time, "1.001 × slower", "0.980 to 1.02"},
		{0.8, &stats.Interval{Lo: 0.5, Hi: 2}, time, "1.25 × faster", "0.500 to 2.00"},
		{1, nil, time, "1.00 ×", quantity.None},
		{1.0004, nil, time, "1.00 ×", quantity.None},
		{math.NaN(), nil, time, quantity.None, quantity.None},
		{0, nil, time, quantity.None, quantity.None},
	} {
		if got := quantity.Factor(c.ratio, c.metric); got != c.factor {
			t.Errorf("Factor(%v) = %q, want %q", c.ratio, got, c.factor)
		}
		if got := quantity.FactorInterval(&stats.Comparison{Ratio: c.ratio, CI: c.ci}); got != c.interval {
			t.Errorf("FactorInterval(%v, %v) = %q, want %q", c.ratio, c.ci, got, c.interval)
		}
	}
}

// Costs have one direction: above 1 is worse for times and rates, with the interval in the same direction.
func TestCost(t *testing.T) {
	time := result.Metric{Unit: result.Seconds, Better: result.Lower}
	rate := result.Metric{Unit: result.PerSecond, Better: result.Higher}
	for _, c := range []struct {
		ratio          float64
		ci             *stats.Interval
		metric         result.Metric
		cost, interval string
	}{
		{152, &stats.Interval{Lo: 149, Hi: 155}, time, "152 ×", "149 to 155"},
		{0.0066, &stats.Interval{Lo: 0.0065, Hi: 0.0067}, rate, "152 ×", "149 to 154"},
		{0.5, &stats.Interval{Lo: 0.4, Hi: 0.625}, time, "0.500 ×", "0.400 to 0.625"},
		{2, nil, rate, "0.500 ×", quantity.None},
		{1.001, &stats.Interval{Lo: 0.98, Hi: 1.02}, time, "1.001 ×", "0.980 to 1.02"},
		{math.NaN(), nil, time, quantity.None, quantity.None},
		{0, nil, rate, quantity.None, quantity.None},
		{0, nil, time, quantity.None, quantity.None},
	} {
		if cost, interval := quantity.Cost(c.ratio, c.metric), quantity.CostInterval(c.ci, c.metric); cost != c.cost || interval != c.interval {
			t.Errorf("the cost of %v with %v is %q, %q; want %q, %q", c.ratio, c.ci, cost, interval, c.cost, c.interval)
		}
	}
}

// A larger cost is never "less": half the containers cost twice as much.
func TestCostWord(t *testing.T) {
	for m, want := range map[result.Metric]string{
		{Unit: result.Count, Better: result.Higher}: "worse", {Unit: result.Bytes, Better: result.Lower}: "more",
		{Unit: result.PerSecond, Better: result.Higher}: "slower", {Unit: result.Seconds, Better: result.Lower}: "slower",
	} {
		if got := quantity.CostWord(stats.Slower, m); got != want {
			t.Errorf("a larger cost in %s is %q, want %q", m.Unit, got, want)
		}
	}
}

func FuzzTextIsShort(f *testing.F) {
	f.Add(21.3e-3)
	f.Add(-1e300)
	f.Fuzz(func(t *testing.T, v float64) {
		for _, unit := range []result.Unit{result.Seconds, result.Bytes, result.BytesPerSecond, result.PerSecond, result.Score, result.Ratio, result.BitsPerSecond, result.FlopPerSecond} {
			if got := quantity.Text(v, unit); got == "" || len(got) > 32 {
				t.Errorf("Text(%v, %s) = %q", v, unit, got)
			}
		}
	})
}

func TestDifference(t *testing.T) {
	for _, c := range []struct {
		median         float64
		ci             *stats.Interval
		want, interval string
	}{
		{0.0247, &stats.Interval{Lo: 0.0239, Hi: 0.0251}, "24.7 ± 0.80 ms", "23.9 to 25.1 ms"},
		{-0.00241, &stats.Interval{Lo: -0.00256, Hi: -0.0023}, "−2.41 ± 0.15 ms", "−2.56 to −2.30 ms"},
		// The scale is the interval's: a difference near nothing has none of its own.
		{20e-6, &stats.Interval{Lo: -0.002, Hi: 0.003}, "0.0200 ± 3.0 ms", "−2.00 to 3.00 ms"},
		{0, &stats.Interval{}, "0 ± 0 s", "0 to 0 s"},
		{-0.5, nil, "−500 ms", quantity.None},
		{math.NaN(), nil, quantity.None, quantity.None},
	} {
		d := stats.Difference{N: 10, Median: c.median, CI: c.ci}
		if got, interval := quantity.Difference(d, result.Seconds), quantity.DifferenceInterval(d, result.Seconds); got != c.want || interval != c.interval {
			t.Errorf("a difference of %v in %v is %q, %q; want %q, %q", c.median, c.ci, got, interval, c.want, c.interval)
		}
	}
}

func TestExtent(t *testing.T) {
	for want, ends := range map[string][2]float64{"2.00 to 3.00 ms": {0.002, 0.003}, "2.00 ms": {0.002, 0.0020001}, "0 s": {0, 0}} {
		if got := quantity.Extent(ends[0], ends[1], result.Seconds); got != want {
			t.Errorf("from %g to %g s: %q, want %q", ends[0], ends[1], got, want)
		}
	}
}
