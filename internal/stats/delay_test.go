package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// twoModes are create times of 6 and 14 ms with noise of 2 % within each mode. Their median may be anywhere between the modes.
var twoModes = model{"6 and 14 ms", func(r *rand.Rand) float64 {
	mode := 6.0
	if r.Float64() < 0.5 {
		mode = 14
	}
	return mode * (1 + 0.02*r.NormFloat64())
}, 8}

var tenPercent = model{"normal of 10 %", func(r *rand.Rand) float64 { return 1 + 0.1*r.NormFloat64() }, 1}

// equalRuns returns runs of two equal targets. The second has a random factor for each run.
func equalRuns(r *rand.Rand, m model, runs, blocks int, spread float64) (baseline, twin [][]Sample) {
	for range runs {
		baseline = append(baseline, fromValues(m.series(r, blocks, 1)...))
		twin = append(twin, fromValues(m.series(r, blocks, math.Exp(spread*r.NormFloat64()))...))
	}
	return baseline, twin
}

// formula is the smallest difference by the standard error of the typical value alone (J. Cohen, "Statistical Power Analysis", 1988), from the
// standard deviation of the log ratio of a block.
func formula(sd float64, n int) float64 {
	t := student(n)
	return math.Expm1((t.Quantile(1-Alpha/2) + t.Quantile(Power)) * sd / math.Sqrt(float64(n)))
}

// Without modes the typical value decides, and the usual formula holds.
func TestSmallestDelayOfOneMode(t *testing.T) {
	baseline, twin := equalRuns(random(1), tenPercent, 5, 60, 0)
	for _, n := range []int{10, 60, 500, 4000} {
		got, want := SmallestDelay(baseline, twin, 0, n, 1), formula(0.1*math.Sqrt2, n)
		near(t, "smallest delay", got, want, want/4)
	}
	// The verdict has no allowance for the variation between runs, which is far above the noise here.
	const spread, n = 0.2, 150
	se := 0.1 * math.Sqrt2 / math.Sqrt(n)
	want := 1.96*se + 0.84*math.Hypot(se, spread)
	near(t, "smallest delay with variation between runs", SmallestDelay(baseline, twin, spread, n, 1), want, want/4)
}

// A delay of the fast mode is found long before it moves the typical value.
func TestSmallestDelayOfTwoModes(t *testing.T) {
	baseline, twin := equalRuns(random(2), twoModes, 5, 60, 0)
	var variance float64
	for i := range baseline {
		c := compare(baseline[i], twin[i], Lower, 1, fewSwaps)
		variance += c.LogSE * c.LogSE * float64(c.N) / float64(len(baseline))
	}
	const n = 60
	got, byFormula := SmallestDelay(baseline, twin, BetweenRuns(baseline, twin, 1), n, 1), formula(math.Sqrt(variance), n)*6 // of the fast mode
	t.Logf("two modes, %d blocks: the smallest delay is %.2f ms, by the formula %.2f ms", n, got, byFormula)
	if !(got > 0.02 && got < byFormula/5) {
		t.Errorf("the smallest delay is %.3g ms, by the formula %.3g ms", got, byFormula)
	}
}

// New runs show the smallest delay with a probability close to Power.
func TestSmallestDelayPower(t *testing.T) {
	trials := simulation.Trials(t, 25, 150)
	for _, m := range []model{tenPercent, tailed, twoModes} {
		for _, n := range []int{8, 40, 600, 1500} {
			r := random(uint64(n))
			baseline, twin := equalRuns(r, m, 8, 60, 0)
			delay := SmallestDelay(baseline, twin, 0, n, uint64(n))
			var found int
			for trial := range trials {
				a, b := m.series(r, n, 1), m.series(r, n, 1)
				for i := range b {
					b[i] += delay
				}
				found += count(compare(fromValues(a...), fromValues(b...), Lower, uint64(trial), fewSwaps).Verdict == Slower)
			}
			t.Logf("%s, %d blocks: the smallest delay is %.2g, and is found in %.0f %%", m.name, n, delay, 100*share(found, trials))
			simulation.AtLeast(t, 0.70, found, trials, "%s, %d blocks: a delay of %.3g is found", m.name, n, delay)
			simulation.AtMost(t, 0.92, found, trials, "%s, %d blocks: a delay of %.3g is found", m.name, n, delay)
		}
	}
}

func TestOddSmallestDelays(t *testing.T) {
	baseline, twin := equalRuns(random(3), tenPercent, 2, 10, 0)
	zero := fromValues(0, 1, 1, 1, 1, 1, 1)
	for name, got := range map[string]float64{
		"five blocks":       SmallestDelay(baseline, twin, 0, 5, 1),
		"no run":            SmallestDelay(nil, nil, 0, 20, 1),
		"too few values":    SmallestDelay([][]Sample{fromValues(1, 2)}, [][]Sample{fromValues(1, 2)}, 0, 20, 1),
		"a value of 0":      SmallestDelay([][]Sample{zero}, [][]Sample{zero}, 0, 20, 1),
		"one run's between": BetweenRuns(baseline[:1], twin[:1], 1),
		"no noise between":  BetweenRuns(baseline, baseline, 1),
	} {
		if !math.IsNaN(got) {
			t.Errorf("%s: %g, want NaN", name, got)
		}
	}
	if got := SmallestDelay(baseline, baseline, 0, 20, 1); got > 0.01 {
		t.Errorf("pairs of equal values have the smallest delay %g", got)
	}
	constant := [][]Sample{fromValues(1, 1, 1, 1, 1, 1)}
	if got := SmallestDelay(constant, constant, math.NaN(), 20, 1); got != 0 {
		t.Errorf("values without noise have the smallest delay %g, want 0", got)
	}
	first := SmallestDelay(baseline, twin, 0, 20, 1)
	if repeat := SmallestDelay(baseline, twin, math.NaN(), 20, 1); first != repeat {
		t.Errorf("one seed has two results, %g and %g", first, repeat)
	}
	// The smallest delay does not depend on the unit.
	for _, side := range [][][]Sample{baseline, twin} {
		for _, run := range side {
			for i := range run {
				run[i].Value /= 1024
			}
		}
	}
	near(t, "smallest delay in another unit", SmallestDelay(baseline, twin, 0, 20, 1)*1024, first, 1e-9)
}

func TestBetweenRuns(t *testing.T) {
	r := random(4)
	source := model{"2 %", func(r *rand.Rand) float64 { return math.Exp(0.02 * r.NormFloat64()) }, 1}
	baseline, twin := equalRuns(r, source, 30, 30, 0.05)
	near(t, "variation between runs", BetweenRuns(baseline, twin, 1), 0.05, 0.02)
	// A shift of both modes by 5 % is far below the error of the typical value.
	baseline, twin = equalRuns(r, twoModes, 30, 30, 0.05)
	near(t, "variation between runs of two modes", BetweenRuns(baseline, twin, 1), 0.05, 0.02)
	var maximum float64
	for range 20 {
		baseline, twin = equalRuns(r, twoModes, 5, 30, 0)
		if tau := BetweenRuns(baseline, twin, 1); tau > maximum {
			maximum = tau
		}
	}
	if maximum > 0.03 {
		t.Errorf("runs of two modes without a variation have one of %.1f %%", 100*maximum)
	}
}
