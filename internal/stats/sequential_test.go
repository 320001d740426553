package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

func boundaries(shares, errors []float64) (z []float64) {
	for _, level := range lookLevels(shares, errors) {
		z = append(z, -normalQuantile(level/2))
	}
	return z
}

// The boundaries of O'Brien and Fleming's type at five equal looks, two-sided at 0.05, as D. M. Reboussin, D. L. DeMets, K. Kim and K. K. G. Lan
// compute them (Controlled Clinical Trials 21 (2000) 190–207): each side spends half of the error.
func TestPublishedBoundaries(t *testing.T) {
	shares := []float64{0.2, 0.4, 0.6, 0.8, 1}
	errors := spending(shares, 0.025, false)
	for i := range errors {
		errors[i] *= 2
	}
	got := boundaries(shares, errors)
	for i, want := range []float64{4.877, 3.357, 2.680, 2.290, 2.031} {
		near(t, "boundary", got[i], want, 0.001)
	}
	near(t, "the only look", boundaries([]float64{1}, spending([]float64{1}, 0.05, false))[0], 1.959964, 1e-5)
	near(t, "the only look, with half of the blocks", boundaries([]float64{0.5}, spending([]float64{0.5}, 0.05, true))[0], 1.959964, 1e-5)
	near(t, "the error after half of the blocks", spent(0.5, 0.05), 2*(1-0.9972), 1e-4) // Φ(1.96/√0.5) = Φ(2.772) = 0.9972
}

// Brownian motions cross the boundaries with the probability that the rule spends.
func TestBoundariesSpendTheError(t *testing.T) {
	trials := simulation.Trials(t, 50_000, 200_000)
	looks := Looks(10, 200)
	var shares []float64
	for _, n := range looks {
		shares = append(shares, float64(n)/200)
	}
	limits := boundaries(shares, spending(shares, 0.05, false))
	r := random(1)
	crossed := make([]int, len(looks))
	for range trials {
		motion, previous := 0.0, 0.0
		for i, share := range shares {
			motion += math.Sqrt(share-previous) * r.NormFloat64()
			previous = share
			if math.Abs(motion) > limits[i]*math.Sqrt(share) {
				for j := i; j < len(shares); j++ {
					crossed[j]++
				}
				break
			}
		}
	}
	for i, s := range shares {
		want := spent(s, 0.05)
		if got := share(crossed[i], trials); math.Abs(got-want) > 4*simulationError(want, trials)+1/float64(trials) {
			t.Errorf("after %d blocks %.5f of the motions have crossed, want %.5f", looks[i], got, want)
		}
	}
}

func TestLooks(t *testing.T) {
	for _, tt := range []struct {
		first, most int
		want        []int
	}{
		{10, 40, []int{10, 12, 14, 17, 20, 23, 27, 32, 40}},
		{1, 10, []int{6, 7, 10}},
		{20, 20, []int{20}},
		{1, 3, []int{3}},
	} {
		if got := Looks(tt.first, tt.most); !slices.Equal(got, tt.want) {
			t.Errorf("Looks(%d, %d) = %v, want %v", tt.first, tt.most, got, tt.want)
		}
	}
}

func TestLookConverts(t *testing.T) {
	rule := NewSequential(Looks(10, 200))
	for _, look := range []*Look{rule.At(10, false), rule.At(60, false), rule.At(60, true)} {
		previous := 0.0
		for _, p := range []float64{0, 1e-200, 1e-30, 1e-9, 1e-6, 1e-4, 0.003, 0.01, 0.04, 0.2, 0.7, 1} {
			overall := look.P(p)
			if overall < max(p, previous) || overall > 1 {
				t.Errorf("after %d blocks %g is %g for the rule", look.Blocks, p, overall)
			}
			previous = overall
			if level := look.Level(overall); overall > 1e-11 && overall < 1 && math.Abs(level/p-1) > 1e-6 {
				t.Errorf("after %d blocks the level for %g is %g, want %g", look.Blocks, overall, level, p)
			}
		}
	}
	lookP, endP := rule.At(44, false).P(0.001), rule.At(44, true).P(0.001)
	if lookP < 0.05 || endP > 0.002 {
		t.Errorf("0.001 is %g early and %g if no look follows", lookP, endP)
	}
	// The table is close to the exact boundaries between its entries too.
	var shares []float64
	for _, n := range rule.looks[:12] {
		shares = append(shares, float64(n)/200)
	}
	for _, overall := range []float64{0.05, 0.05 / 3, 0.05 / 170} {
		exact := lookLevels(shares, spending(shares, overall, false))
		near(t, "level / exact level", rule.At(rule.looks[11], false).Level(overall)/exact[11], 1, 0.03)
	}
	var look *Look
	if look.P(0.03) != 0.03 || look.Level(0.03) != 0.03 {
		t.Error("the only look of a run changes p-values")
	}
}

func TestSequentialFalseAlarms(t *testing.T) {
	trials := simulation.Trials(t, 100, 1000)
	const limit = 40
	rule := NewSequential(Looks(10, limit))
	kinds := []model{normal, disturbed, bimodal}
	var allAlarms, allRepeated int
	for i, noise := range kinds {
		r := random(uint64(i))
		alarms, repeated := 0, 0
		for trial := range uint64(trials) {
			targets := run(r, noise, normal, limit, 1, 1)
			alarm, alarmAtEnd := false, false
			for _, n := range rule.looks {
				p := compare(targets[0][:n], targets[1][:n], Lower, trial, fewSwaps).P
				alarm, alarmAtEnd = alarm || rule.At(n, false).P(p) < Alpha, alarmAtEnd || p < Alpha
			}
			alarms += count(alarm)
			repeated += count(alarmAtEnd)
		}
		t.Logf("%s noise, looks from 10 to 40 blocks: a false difference in %.1f %% of the runs; with 0.05 at each of %d looks in %.1f %%", noise.name, 100*share(alarms, trials), len(rule.looks), 100*share(repeated, trials))
		simulation.AtMost(t, Alpha, alarms, trials, "%s: runs with a false difference", noise.name)
		allAlarms, allRepeated = allAlarms+alarms, allRepeated+repeated
	}
	simulation.AtMost(t, Alpha, allAlarms, len(kinds)*trials, "runs with a false difference")
	// Else no rule is necessary.
	simulation.AtLeast(t, 2*Alpha, allRepeated, len(kinds)*trials, "runs with a false difference by 0.05 at each look")
}

// At a variation of 14 %, a run of 200 blocks finds a difference of 5 %. With looks, one of 10 % needs much fewer blocks. The test uses the
// greatest p-value that the joint test can give, twice the p-value of the signed-rank test.
func TestSequentialSavesBlocks(t *testing.T) {
	trials := simulation.Trials(t, 100, 1000)
	const limit = 200
	fourteen := model{"lognormal 14 %", func(r *rand.Rand) float64 { return math.Exp(0.14 * r.NormFloat64()) }, 1}
	rule := NewSequential(Looks(10, limit))
	for _, tt := range []struct{ factor, blocks, found, coverage float64 }{
		{1.05, 140, 0.80, 0.93}, {1.10, 75, 0.99, 0.93}, {1.50, 33, 0.99, 0.93},
	} {
		r := random(1)
		var blocks []float64
		found, fixed, coverCount := 0, 0, 0
		for range trials {
			targets := run(r, fourteen, normal, limit, 1, tt.factor)
			a, b := pair(targets[0], targets[1])
			logRatios := subtracted(logarithms(b), logarithms(a))
			fixed += count(signedRank(logRatios)/partWeights[0] < Alpha)
			for _, n := range rule.looks {
				decided := rule.At(n, false).P(signedRank(logRatios[:n])/partWeights[0]) < Alpha
				found += count(decided)
				if decided || n == limit {
					blocks = append(blocks, float64(n))
					ci := walshAverages(slices.Sorted(slices.Values(logRatios[:n]))).interval(signedRankCritical(n, 1-Level))
					if log := math.Log(tt.factor); ci.Lo <= log && log <= ci.Hi {
						coverCount++
					}
					break
				}
			}
		}
		t.Logf("noise of 14 %% with looks, factor %g: found in %.0f %% (%.0f %% with %d blocks), with a median of %.0f blocks and a mean of %.0f; at the stop the interval covers in %.1f %%",
			tt.factor, 100*share(found, trials), 100*share(fixed, trials), limit, Median(blocks), meanOf(blocks), 100*share(coverCount, trials))
		stops := 0
		for _, n := range blocks {
			stops += count(n <= tt.blocks)
		}
		simulation.AtLeast(t, 0.5, stops, trials, "factor %g: at most %.0f blocks", tt.factor, tt.blocks)
		simulation.AtLeast(t, tt.found, found, trials, "factor %g: found", tt.factor)
		simulation.AtLeast(t, tt.coverage, coverCount, trials, "factor %g: the interval at the stop covers", tt.factor)
	}
}

// The verdict of a comparison depends on its look: the same values are a difference at the end and not at an early look.
func TestJudgeAtLook(t *testing.T) {
	rule := NewSequential(Looks(10, 200))
	var a, b []Sample
	for block, v := range []float64{1, 1.1, 0.9, 1.2, 1.05, 0.95, 1.15, 1.02, 0.97, 1.07} {
		a, b = append(a, Sample{block, v}), append(b, Sample{block, 1.5 * v * (1 + 0.01*float64(block))})
	}
	fixedRun := Compare(a, b, Lower, 1)
	firstLook, lastLook := fixedRun.AtLook(rule.At(10, false)), fixedRun.AtLook(rule.At(10, true))
	if fixedRun.Verdict != Slower || lastLook.Verdict != Slower || firstLook.Verdict != TooFew {
		t.Errorf("verdicts %q without looks, %q if the run ended, %q at the first look", fixedRun.Verdict, lastLook.Verdict, firstLook.Verdict)
	}
	if !math.IsInf(firstLook.Detectable, 1) || firstLook.CI != fixedRun.CI || firstLook.P <= fixedRun.P {
		t.Errorf("at the first look: detectable %g, interval %v, P = %g", firstLook.Detectable, firstLook.CI, firstLook.P)
	}
	if repeat := fixedRun.AtLook(nil); repeat.Look != nil || repeat.P != fixedRun.P {
		t.Error("no look changes a comparison")
	}
	if triple := Compare(a[:3], b[:3], Lower, 1).AtLook(rule.At(3, false)); triple.Verdict != TooFew {
		t.Errorf("three blocks: %q", triple.Verdict)
	}
}

func TestPreciseRatio(t *testing.T) {
	c := Comparison{CI: &Interval{1 / 1.02, 1.02}}
	if !c.Precise(0.0201) || c.Precise(0.0199) || (&Comparison{}).Precise(1) {
		t.Error("Precise compares another width")
	}
	// An interval without a width is not enough: five of fifty pairs differ.
	values := slices.Repeat([]float64{10}, 50)
	a := fromValues(values...)
	for i := range 5 {
		values[10*i] = 9
	}
	if c := Compare(a, fromValues(values...), Lower, 1); c.CI.Lo != c.CI.Hi || c.Precise(0) || !c.Precise(0.01) {
		t.Errorf("the interval is %v, and precise without a precision: %v", c.CI, c.Precise(0))
	}
	if c := Compare(a, a, Lower, 1); !c.Precise(0) {
		t.Error("equal values are not precise")
	}
}
