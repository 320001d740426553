package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// The normal p-values of many blocks are those of random swaps, part by part, and the ratios are the same.
func TestLinearTestAgreesWithSwaps(t *testing.T) {
	const n, swaps = 300, 4000
	two := model{"two modes", createTime, 6}
	for seed, noise := range []model{normal, tailed, disturbed, two} {
		r := random(uint64(seed))
		var a, b []float64
		for range n {
			a, b = append(a, noise.draw(r)), append(b, 1.008*noise.draw(r))
		}
		s := newSwapper(a, b)
		linear, swapTest := linearTest(a, b, jointDraws), jointTest(s, 0, swaps, 1)
		for i, part := range parts {
			got, want := linear.each[i], swapTest.each[i]
			if min(want, got) < clearBound/2 && math.Abs(got-want) > 0.02+5*simulationError(want, swaps) {
				t.Errorf("%s: the p-value of the %s is %.4f, by swaps %.4f", noise.name, part, got, want)
			}
			if (linear.observed[i] > 0) != (swapTest.observed[i] > 0) {
				t.Errorf("%s: the statistic of the %s is %g, by swaps %g", noise.name, part, linear.observed[i], swapTest.observed[i])
			}
			if i > 1 {
				near(t, noise.name+": ratio of the "+string(part), linear.ratio[i], swapTest.ratio[i], 1e-9)
			}
		}
	}
}

func TestLinearTestHoldsItsLevel(t *testing.T) {
	trials := simulation.Trials(t, 200, 1000)
	const n = 320
	kinds := []model{normal, tailed, disturbed, bimodal, {"two modes", createTime, 6}}
	total := 0
	for i, noise := range kinds {
		r := random(uint64(i))
		hits := 0
		for range trials {
			targets := run(r, noise, normal, n, 1, 1)
			a, b := pair(targets[0], targets[1])
			if joint := linearTest(a, b, jointDraws); joint.p() < Alpha {
				hits++
			}
		}
		t.Logf("%s, %d blocks: %.1f %% of the p-values are below 0.05", noise.name, n, 100*share(hits, trials))
		simulation.AtMost(t, Alpha, hits, trials, "%s: p-values below 0.05", noise.name)
		simulation.AtLeast(t, Alpha/3, hits, trials, "%s: p-values below 0.05", noise.name)
		total += hits
	}
	simulation.AtMost(t, Alpha, total, len(kinds)*trials, "p-values below 0.05")
	simulation.AtLeast(t, Alpha/3, total, len(kinds)*trials, "p-values below 0.05")
}

// A run of many blocks finds what a run of fewer blocks finds: a delay of a steady fast path, which a noisy slow path hides from the typical value.
func TestManyBlocksPower(t *testing.T) {
	trials := simulation.Trials(t, 30, 100)
	const delay = 0.07 // ms
	path := func(r *rand.Rand) float64 {
		if r.Float64() < 0.5 {
			return 8 + 20*r.Float64()
		}
		return 6 + 0.1*r.NormFloat64()
	}
	for _, n := range []int{mostSwapped, mostSwapped + 1} {
		r := random(1)
		found, rankHits := 0, 0
		for trial := range uint64(trials) {
			a, b := pairs(n, func(int) (float64, float64) { return path(r), path(r) + delay })
			c := compare(a, b, Lower, trial, 5000)
			found += count(c.Verdict == Slower && c.By == LowestQuarter)
			rankHits += count(signedRank(c.LogRatios) < Alpha)
		}
		t.Logf("+%g ms in %d blocks: found in %d of %d runs, by the signed-rank test alone in %d", delay, n, found, trials, rankHits)
		simulation.AtLeast(t, 0.8, found, trials, "%d blocks: found", n)
		simulation.AtMost(t, 0.2, rankHits, trials, "%d blocks: found by the signed-rank test alone", n)
	}
}

// No part of equal values differs, and two values do not stop the test.
func TestLinearTestOfFewDifferentValues(t *testing.T) {
	equal := slices.Repeat([]float64{2}, mostSwapped+1)
	values := slices.Clone(equal)
	if joint := linearTest(equal, values, jointDraws); joint.each != [...]float64{1, 1, 1, 1, 1} {
		t.Errorf("equal values have the p-values %v", joint.each)
	}
	for count := range 9 {
		values[count] = 3
		if joint := linearTest(equal, values, jointDraws); joint.p() < math.Ldexp(1, -count) {
			t.Errorf("%d blocks differ: p = %g", count+1, joint.p())
		}
	}
	for i := range values {
		values[i] = 2 + float64(i%2)
	}
	if joint := linearTest(equal, values, jointDraws); joint.p() > 1e-9 || math.Abs(joint.ratio[4]-1.5) > 1e-9 || math.Abs(joint.ratio[2]-1) > 1e-9 {
		t.Errorf("half of the values are greater: p = %g, ratios %v", joint.p(), joint.ratio)
	}
}
