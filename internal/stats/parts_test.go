package stats

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// crun's create: 6 and 14 ms, as often.
func createTime(r *rand.Rand) float64 {
	if r.Float64() < 0.5 {
		return 14 + 0.5*r.NormFloat64()
	}
	return 6 + 0.3*r.NormFloat64()
}

// fromValues are the values of blocks in their order.
func fromValues(values ...float64) []Sample {
	var samples []Sample
	for block, v := range values {
		samples = append(samples, Sample{Block: block, Value: v})
	}
	return samples
}

// The exact test of few blocks is the test of all swaps, and its smallest p-value is that of the signed-rank test alone.
func TestJointTestIsExact(t *testing.T) {
	for _, n := range []int{6, 9, 16} {
		a, b := pairs(n, func(i int) (float64, float64) { return float64(10 + i), float64(10+i) * 1.5 })
		joint := jointTest(newSwapper(values(a), values(b)), exactSwaps, randomSwaps, 1)
		near(t, "p-value of blocks that all agree", joint.p(), math.Ldexp(1, 1-n), 1e-15)
		near(t, "p-value of the typical value", joint.each[0], joint.p(), 1e-15)
	}
	equal := []float64{1, 2, 3, 4, 5, 6, 7}
	if joint := jointTest(newSwapper(equal, equal), exactSwaps, randomSwaps, 1); joint.each != [...]float64{1, 1, 1, 1, 1} {
		t.Errorf("equal blocks have the p-values %v, want 1", joint.each)
	}
}

// Random swaps and all swaps agree.
func TestRandomSwapsAgreeWithAll(t *testing.T) {
	r := random(5)
	for range 20 {
		a, b := tailed.series(r, 14, 1), tailed.series(r, 14, 1.05)
		s := newSwapper(a, b)
		exact, sample := s.all().judge(), s.random(20_000, 1).judge()
		if math.Abs(slices.Min(exact[:])-slices.Min(sample[:])) > 0.04 { // one step of the signed-rank sum
			t.Errorf("the p-values are %.4f of all swaps and %.4f of random ones", exact, sample)
		}
	}
}

// The tables of swaps give the statistics of the values after each swap, bit for bit: from few blocks, from blocks with equal values, and from as many as
// the bits of several words.
func TestSwapsFromTables(t *testing.T) {
	r := random(6)
	for _, n := range []int{1, 2, 3, 6, 31, 32, 33, 64, 65, 150} {
		a, b := normal.series(r, n, 1), bimodal.series(r, n, 1.1)
		b[n/2] = a[n/2]
		s := newSwapper(a, b)
		for range 50 {
			mask := s.mask()
			for i := range mask {
				mask[i] = r.Uint64()
			}
			x, y := slices.Clone(a), slices.Clone(b)
			for i := range n {
				if mask[i/64]>>(i%64)&1 != 0 {
					x[i], y[i] = y[i], x[i]
				}
			}
			if got, want := s.statistics(mask), statisticsOf(x, y); got != want {
				t.Fatalf("%d blocks: the statistics are %v, want %v", n, got, want)
			}
		}
	}
}

// statisticsOf are the statistics of the parts, from their definitions.
func statisticsOf(a, b []float64) (t [len(parts)]float64) {
	logA, logB := logarithms(a), logarithms(b)
	ranks, _ := signedRanks(subtracted(logB, logA))
	for i, d := range rankDifferences(logA, logB) {
		t[0], t[1] = t[0]+ranks[i], t[1]+d
	}
	sum := func(logs []float64, count int) (sum float64) {
		for _, v := range logs[:count] {
			sum += v
		}
		return sum
	}
	sortedA, sortedB := Sorted(logA), Sorted(logB)
	quarter, half := quarterOf(len(a)), halfOf(len(a))
	t[2], t[3] = sum(sortedB, quarter)-sum(sortedA, quarter), sum(sortedB, half)-sum(sortedA, half)
	slices.Reverse(sortedA)
	slices.Reverse(sortedB)
	t[4] = sum(sortedB, quarter) - sum(sortedA, quarter)
	return t
}

// Exchangeable targets: the p-value of the joint test is below a level at most so often.
func TestJointTestHoldsItsLevel(t *testing.T) {
	trials := simulation.Trials(t, 100, 2000)
	sizes, kinds := []int{8, 12, 20}, []model{normal, tailed, disturbed, {"two modes", createTime, 6}}
	total := 0
	for _, n := range sizes {
		for i, noise := range kinds {
			r := random(uint64(10*n + i))
			var hits int
			for trial := range uint64(trials) {
				targets := run(r, noise, normal, n, 1, 1)
				hits += count(compare(targets[0], targets[1], Lower, trial, fewSwaps).P < Alpha)
			}
			simulation.AtMost(t, Alpha, hits, trials, "n = %d, %s: p-values below 0.05", n, noise.name)
			total += hits
		}
	}
	simulation.AtMost(t, Alpha, total, len(sizes)*len(kinds)*trials, "p-values below 0.05")
}

// A delay that is small beside the distance of two modes moves the fast path. The joint test finds it in fewer blocks than the signed-rank test, with
// or without an interval of the median of ratios.
func TestJointTestPower(t *testing.T) {
	trials := simulation.Trials(t, 100, 200)
	const n, delay = 60, 0.6 // ms
	r := random(1)
	var joint, rankHits, agreements, nameHits int
	for trial := range uint64(trials) {
		a, b := pairs(n, func(int) (float64, float64) { return createTime(r), createTime(r) + delay })
		c := compare(a, b, Lower, trial, fewSwaps)
		if c.Verdict == Slower {
			joint++
			nameHits += count(c.By != Typical)
		}
		slices.Sort(c.LogRatios)
		if signedRank(c.LogRatios) < Alpha {
			rankHits++
			if ci := medianInterval(c.LogRatios, 1); ci.Lo > 0 {
				agreements++
			}
		}
	}
	t.Logf("+0.6 ms in %d blocks: found in %.0f %%, in %.0f %% by another part than the typical value; by the signed-rank test alone in %.0f %%, with the interval in %.0f %%",
		n, 100*share(joint, trials), 100*share(nameHits, trials), 100*share(rankHits, trials), 100*share(agreements, trials))
	simulation.AtLeast(t, 0.95, joint, trials, "the joint test finds the delay")
	simulation.AtMost(t, 0.75, rankHits, trials, "the signed-rank test alone finds the delay")
}

// One decision: 50 blocks, lognormal noise of 10 %, an effect of 5 %.
func TestOneDecisionPower(t *testing.T) {
	trials := simulation.Trials(t, 200, 400)
	const n = 50
	noise := model{"lognormal of 10 %", func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) }, 1}
	r := random(1)
	var found, agreements, gains int
	for trial := range uint64(trials) {
		targets := run(r, noise, normal, n, 1, 1.05)
		c := compare(targets[0], targets[1], Lower, trial, fewSwaps)
		found += count(c.Verdict == Slower)
		slices.Sort(c.LogRatios)
		if ci := medianInterval(c.LogRatios, 1); signedRank(c.LogRatios) < Alpha && ci.Lo > 0 {
			agreements++
		} else if c.Verdict == Slower {
			gains++
		}
	}
	t.Logf("5 %% difference in 50 blocks, lognormal noise of 10 %%: found in %.0f %%; by a test and an interval of the median of ratios in %.0f %%", 100*share(found, trials), 100*share(agreements, trials))
	simulation.AtLeast(t, 0.6, found, trials, "one decision finds the difference")
	simulation.AtLeast(t, 0.1, gains, trials, "one decision finds the difference, and two do not")
}

func TestVerdictNamesThePart(t *testing.T) {
	r := random(3)
	var speedup, mixture, base []Sample
	value := func(isSlow bool, low, high float64) float64 {
		if isSlow {
			low = high
		}
		return low * (1 + 0.03*r.NormFloat64())
	}
	for block := range 60 { // all four pairs of modes are equally frequent
		base = append(base, Sample{block, value(block%2 == 0, 6, 14)})
		speedup, mixture = append(speedup, Sample{block, value(block/2%2 == 0, 6.5, 14)}), append(mixture, Sample{block, value(block/2%2 == 0, 7, 12)})
	}
	if c := Compare(base, speedup, Lower, 1); c.Verdict != Slower || c.By != LowestQuarter && c.By != LowerHalf {
		t.Errorf("a slower fast path is %q by %q", c.Verdict, c.By)
	}
	if c := Compare(base, mixture, Lower, 1); c.Verdict != Mixed {
		t.Errorf("a slower fast path and a faster slow path are %q by %q: %+v", c.Verdict, c.By, c.Parts)
	}
}

var reports = flag.Int("reports", 200, "simulated reports of each kind of noise, with "+simulation.Variable)

// reportTrials is the number of simulated reports of each kind of noise.
func reportTrials(t *testing.T, brief int) int { return simulation.Trials(t, brief, *reports) }

// falseReports are simulated reports of equal targets.
type falseReports struct {
	// everywhere and alone are the numbers of reports with a difference over all comparisons, and with one in its metric alone.
	everywhere, alone int
	// warned is the number of reports with a warning of dependent ratios, and warnedFalse of those reports that have a difference in a metric alone.
	warned, warnedFalse int
	// covered is the number of intervals of a ratio that contain 1, among all comparisons.
	covered, comparisons int
}

// reportsOf judges reports of five metrics. metric draws the values of equal targets in one metric, the baseline first.
func reportsOf(trials int, metric func(r *rand.Rand) [][]Sample) (n falseReports) {
	r := random(9)
	for trial := range uint64(trials) {
		var comparisons []*Comparison
		for range 5 {
			for _, c := range Judge(familyOf(metric(r), trial), Alpha, 0) {
				comparisons = append(comparisons, &c)
			}
		}
		JudgeTogether(comparisons, Alpha)
		differs := slices.ContainsFunc(comparisons, func(c *Comparison) bool { return c.Differs() })
		warns := slices.ContainsFunc(comparisons, func(c *Comparison) bool { return c.Dependent })
		n.everywhere += count(slices.ContainsFunc(comparisons, func(c *Comparison) bool { return c.Everywhere }))
		n.alone += count(differs)
		n.warned += count(warns)
		n.warnedFalse += count(differs && warns)
		for _, c := range comparisons {
			n.covered += count(c.CI.Lo <= 1 && 1 <= c.CI.Hi)
		}
		n.comparisons += len(comparisons)
	}
	return n
}

// Holm's correction over the whole report: no difference anywhere, five metrics of four targets.
func TestFalseAlarmsOfReports(t *testing.T) {
	const blocks = 12
	trials := reportTrials(t, 80)
	type kind struct {
		name   string
		metric func(r *rand.Rand) [][]Sample
	}
	kinds := []kind{{"autocorrelated blocks (0.6) and normal", func(r *rand.Rand) [][]Sample {
		targets := run(r, normal, bimodal, blocks, 1, 1, 1, 1, 1)
		mood := moods(r, blocks)
		for _, target := range targets {
			inMood(target, mood)
		}
		return targets
	}}}
	for _, noise := range []model{normal, lognormal, tailed, pareto, bimodal, disturbed} {
		kinds = append(kinds, kind{noise.name, func(r *rand.Rand) [][]Sample { return run(r, noise, bimodal, blocks, 1, 1, 1, 1, 1) }})
	}
	if !simulation.Full() {
		kinds = kinds[:1] // the noise matters to a comparison, which other tests simulate, and not to the correction
	}
	for _, k := range kinds {
		n := reportsOf(trials, k.metric)
		t.Logf("%s noise, %d reports of %d blocks with two modes and drift: %.1f %% of the reports have a difference over all comparisons, %.1f %% one in its metric alone; the interval of the ratio covers it in %.1f %%",
			k.name, trials, blocks, 100*share(n.everywhere, trials), 100*share(n.alone, trials), 100*share(n.covered, n.comparisons))
		simulation.AtMost(t, Alpha, n.everywhere, trials, "%s noise: reports with a false difference over all comparisons", k.name)
	}
}

// A target with a mood of its own has more false differences than stated, because pairs do not remove the mood. Most of these reports have the warning
// that says so.
func TestFalseAlarmsOfMoodyTargetsAreWarnedOf(t *testing.T) {
	const blocks = 60
	trials := reportTrials(t, 12)
	n := reportsOf(trials, func(r *rand.Rand) [][]Sample {
		targets := run(r, normal, bimodal, blocks, 1, 1, 1, 1, 1)
		inMood(targets[1], moods(r, blocks))
		return targets
	})
	t.Logf("normal noise and one target with an autocorrelation of 0.6, %d reports of %d blocks: %.1f %% of the reports have a difference over all comparisons, %.1f %% one in its metric alone; the ratios are warned of in %.1f %% of the reports, and in %.1f %% of those with a difference",
		trials, blocks, 100*share(n.everywhere, trials), 100*share(n.alone, trials), 100*share(n.warned, trials), 100*share(n.warnedFalse, n.alone))
	// Else no warning is necessary.
	simulation.AtLeast(t, 2*Alpha, n.everywhere, trials, "reports with a false difference over all comparisons")
	simulation.AtLeast(t, 0.8, n.warned, trials, "reports with a warning")
	simulation.AtLeast(t, 0.8, n.warnedFalse, n.alone, "reports with a false difference that have a warning")
}

// moods are factors with an autocorrelation of 0.6 and a variation of 10 %.
func moods(r *rand.Rand, n int) []float64 {
	const correlation = 0.6
	mood := autoregressive(r, n, correlation)
	for i, v := range mood {
		mood[i] = math.Exp(0.1 * math.Sqrt(1-correlation*correlation) * v)
	}
	return mood
}

func inMood(samples []Sample, mood []float64) {
	for i := range samples {
		samples[i].Value *= mood[i]
	}
}

func TestJudgeTogether(t *testing.T) {
	one := func(p float64) *Comparison { return &Comparison{P: p, Adjusted: p, Verdict: Slower, By: Typical} }
	comparisons := []*Comparison{one(0.0001), one(0.03), {P: 0.0001, Verdict: NoDifference}, {P: math.NaN(), Verdict: TooFew}}
	JudgeTogether(comparisons, Alpha)
	for i, want := range []bool{true, true, false, false} {
		if comparisons[i].Everywhere != want {
			t.Errorf("comparison %d holds everywhere: %v, want %v", i, comparisons[i].Everywhere, want)
		}
	}
	group := []*Comparison{one(0.03), one(0.03), one(0.03)}
	if JudgeTogether(group, Alpha); group[0].Everywhere {
		t.Error("three differences with p = 0.03 hold everywhere")
	}
}

func TestMargin(t *testing.T) {
	one := func(lo, hi, p float64, parts ...PartDifference) Comparison {
		return Comparison{N: 20, Better: Lower, Ratio: math.Sqrt(lo * hi), CI: &Interval{lo, hi}, P: p, MinP: 1e-5, LogSE: 0.01, Parts: parts}
	}
	for _, c := range []struct {
		name string
		of   Comparison
		want Verdict
	}{
		{"shown and small", one(1.01, 1.02, 0.0001), Negligible},
		{"not shown and small", one(0.99, 1.02, 0.3), Negligible},
		{"shown, perhaps large", one(1.01, 1.04, 0.0001), Slower},
		{"not shown, perhaps large", one(0.99, 1.04, 0.3), NoDifference},
		{"small but for another part", one(0.99, 1.02, 0.0001, PartDifference{Typical, 1, 0.5, 0, false}, PartDifference{LowestQuarter, 1.07, 0.0001, 0, true}), Slower},
	} {
		if got := Judge([]Comparison{c.of}, Alpha, 0.03)[0].Verdict; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A lost block is the worst one for its target: it may undo a better verdict, and it never makes one. With 3 lost blocks the signed-rank test
// has p = 0.03, and the typical value has half of the error of 5 %.
func TestLostBlocksAreWorst(t *testing.T) {
	a, b := pairs(20, func(block int) (float64, float64) { return 10, 9 - float64(block)/100 })
	c := Compare(a, b, Lower, 1)
	for blocks, want := range map[int]Verdict{0: Faster, 1: Faster, 2: Faster, 3: TrialsLost, 8: TrialsLost} {
		c.Lost = Losses{OtherBlocks: blocks}
		if got := Judge([]Comparison{c}, Alpha, 0)[0].Verdict; got != want {
			t.Errorf("faster with %d lost blocks is %q, want %q", blocks, got, want)
		}
		c.Lost = Losses{BaselineBlocks: blocks}
		if got := Judge([]Comparison{c}, Alpha, 0)[0].Verdict; got != Faster {
			t.Errorf("faster than a baseline with %d lost blocks is %q", blocks, got)
		}
	}
}

// With one lost block the p-value of 19 blocks that are all faster is 0.0014 in the place of 0.0000076. That is enough in the family of the comparison, and not
// among 100 comparisons.
func TestLostBlocksCountOverTheWholeReport(t *testing.T) {
	a, b := pairs(19, func(block int) (float64, float64) { return 10, 9 - float64(block)/100 })
	for blocks, want := range map[int]bool{0: true, 1: false} {
		c := Compare(a, b, Lower, 1)
		c.Lost = Losses{OtherBlocks: blocks, Other: float64(blocks) / 20}
		c = Judge([]Comparison{c}, Alpha, 0)[0]
		if c.Verdict != Faster {
			t.Errorf("with %d lost blocks the verdict is %q, want %q", blocks, c.Verdict, Faster)
		}
		comparisons := []*Comparison{&c}
		for range 99 {
			equal := Compare(a, a, Lower, 1)
			comparisons = append(comparisons, &equal)
		}
		JudgeTogether(comparisons, Alpha)
		if c.Everywhere != want {
			t.Errorf("with %d lost blocks the difference is shown over all comparisons: %v, want %v", blocks, c.Everywhere, want)
		}
	}
}

// A target that loses trials has no better part, and keeps its worse ones.
func TestLostTrialsOfMixedDifferences(t *testing.T) {
	parts := []PartDifference{{LowestQuarter, 1.3, 0.0001, 0, true}, {HighestQuarter, 0.8, 0.0002, 0, false}}
	comparison := Comparison{N: 40, Better: Lower, Ratio: 1, CI: &Interval{0.9, 1.1}, P: 0.0001, MinP: 1e-5, LogSE: 0.01, LogRatios: make([]float64, 40), Parts: parts}
	for _, c := range []struct {
		name string
		lost Losses
		want Verdict
		by   Part
	}{
		{"no trial", Losses{}, Mixed, LowestQuarter},
		{"30 % of the target", Losses{Other: 0.3, OtherBlocks: 12}, Slower, LowestQuarter},
		{"one block of the target", Losses{Other: 0.025, OtherBlocks: 1}, Slower, LowestQuarter},
		{"30 % of the baseline", Losses{Baseline: 0.3, BaselineBlocks: 12}, Faster, HighestQuarter},
		{"both", Losses{Baseline: 0.3, BaselineBlocks: 12, Other: 0.3, OtherBlocks: 12}, TrialsLost, ""},
	} {
		comparison.Lost = c.lost
		if got := Judge([]Comparison{comparison}, Alpha, 0)[0]; got.Verdict != c.want || got.By != c.by {
			t.Errorf("%s: %q by %q, want %q by %q", c.name, got.Verdict, got.By, c.want, c.by)
		}
	}
}

// A difference is too small to matter only if lost trials cannot hide a larger one.
func TestLostTrialsOfSmallDifferences(t *testing.T) {
	noise := random(3)
	value := func() float64 { return 10 * math.Exp(0.015*noise.NormFloat64()) }
	a, b := pairs(40, func(int) (float64, float64) { return value(), value() })
	c := Compare(a, b, Lower, 1)
	for _, tt := range []struct {
		of   Losses
		want Verdict
	}{
		{Losses{}, Negligible},
		{Losses{Other: 1. / 41, OtherBlocks: 1}, Negligible},
		{Losses{Other: 2. / 42, OtherBlocks: 20}, NoDifference},
		{Losses{Baseline: 2. / 42, BaselineBlocks: 20}, NoDifference},
		{Losses{Other: 0.3}, NoDifference},
		{Losses{Baseline: 0.3}, NoDifference},
	} {
		c.Lost = tt.of
		if got := Judge([]Comparison{c}, Alpha, 0.015)[0]; got.Verdict != tt.want {
			t.Errorf("with %+v the verdict is %q, want %q; interval %+v", tt.of, got.Verdict, tt.want, *got.CI)
		}
	}
}

// The interval of the ratio of the means. A mean of heavy tails has no interval that holds with few values.
func TestMeansCoverage(t *testing.T) {
	trials := simulation.Trials(t, 500, 2000)
	for _, c := range []struct {
		noise model
		n     int
		least float64
	}{{normal, 6, 0.94}, {normal, 20, 0.94}, {lognormal, 20, 0.94}, {bimodal, 20, 0.94}, {tailed, 20, 0.94}, {pareto, 20, 0.85}} {
		r := random(uint64(c.n))
		var coverCount int
		for range trials {
			coverCount += count(covers(*meansInterval(c.noise.series(r, c.n, 1), c.noise.series(r, c.n, 1.1)), 1.1))
		}
		t.Logf("n = %d, %s: the interval of the ratio of the means covers it in %.1f %%", c.n, c.noise.name, 100*share(coverCount, trials))
		simulation.AtLeast(t, c.least, coverCount, trials, "n = %d, %s: the interval of the ratio of the means covers it", c.n, c.noise.name)
	}
}

// Pairs of equal values say nothing, however many there are: the smallest p-value of a run counts the others. They are evidence all the same: with
// more blocks nothing else would be found.
func TestEqualPairsSayNothing(t *testing.T) {
	for _, blocks := range []int{8, 400} {
		for signed, want := range map[int]float64{0: 1, 1: 1, 3: 0.25, 6: 2.0 / 64} {
			a, b := pairs(blocks, func(block int) (float64, float64) { return 10, 10 + float64(count(block < signed)) })
			c := Compare(a, b, Lower, 1)
			if c.MinP != want || blocks == 8 && signed == 6 && c.P != want || signed == 0 && (c.Verdict != NoDifference || c.Detectable != 0) {
				t.Errorf("%d of %d blocks differ: MinP = %g, P = %g, want %g; %q, detectable %g", signed, blocks, c.MinP, c.P, want, c.Verdict, c.Detectable)
			}
		}
	}
}

// Many equal pairs: a ratio may be exactly 1, and the direction is the one of the values that differ.
func TestDirectionOfManyEqualPairs(t *testing.T) {
	for _, tt := range []struct{ blocks, lower int }{{24, 6}, {40, 10}, {40, 13}, {400, 60}} {
		a, b := pairs(tt.blocks, func(block int) (float64, float64) {
			v := 100 + 3*float64(block%24)
			return v, v - 2*float64(count(block < tt.lower))
		})
		for direction, want := range map[Direction]Verdict{Lower: Faster, Higher: Slower} {
			if c := Compare(a, b, direction, 1); c.Verdict != want {
				t.Errorf("%d of %d values are lower: %q, want %q; P = %g, parts %+v", tt.lower, tt.blocks, c.Verdict, want, c.P, c.Parts)
			}
		}
	}
}

// No verdict has two directions if only one exists, also where a quartile lies in the gap between two modes.
func TestOneDirectionIsNotMixed(t *testing.T) {
	trials := simulation.Trials(t, 30, 150)
	sizes := []int{60, 200, 300, 301, 600}
	total := 0
	for _, n := range sizes {
		r := random(uint64(n))
		hits := 0
		for trial := range uint64(trials) {
			a, b := pairs(n, func(int) (float64, float64) {
				x, y := 1+0.02*r.NormFloat64(), 1+0.02*r.NormFloat64()
				fastX, fastY := r.IntN(2) == 0, r.IntN(2) == 0
				if x *= 14; fastX {
					x *= 6. / 14
				}
				if y *= 14; fastY {
					y *= 0.98 * 6 / 14 // the fast mode alone is faster
				}
				return x, y
			})
			hits += count(compare(a, b, Lower, trial, firstSwaps).Verdict == Mixed)
		}
		simulation.AtMost(t, 0.01, hits, trials, "%d blocks: mixed verdicts", n)
		total += hits
	}
	simulation.AtMost(t, 0.01, total, len(sizes)*trials, "mixed verdicts")
}

// A difference of the typical value beyond doubt does not hide a part of the other direction, for any number of blocks.
func TestClearDifferenceHidesNoPart(t *testing.T) {
	for _, n := range []int{80, 100, 200, 300, 301, 1000, 5000} {
		r := random(uint64(n))
		a, b := pairs(n, func(block int) (float64, float64) {
			v := 10 + 0.1*r.Float64()
			return v, 0.97 * v * float64(1+2*count(block%8 == 0))
		})
		c := compare(a, b, Lower, 1, firstSwaps)
		comparisons := []*Comparison{&c}
		JudgeTogether(comparisons, Alpha)
		if c.Verdict != Mixed || !c.Everywhere {
			t.Errorf("%d blocks, faster but for a slow path: %q, everywhere: %v; P = %g, parts %+v", n, c.Verdict, c.Everywhere, c.P, c.Parts)
		}
		if margin := Judge([]Comparison{c}, Alpha, 0.05)[0].Verdict; margin == Negligible {
			t.Errorf("%d blocks: a slow path of three times the time is %q", n, margin)
		}
	}
}

// A difference holds over all comparisons if one of its parts does.
func TestEverywhereByAnotherPart(t *testing.T) {
	part := func(part Part, p float64) PartDifference {
		return PartDifference{Part: part, Ratio: 1.1, P: p, Larger: true}
	}
	c := Comparison{
		N: 60, P: 0.0001, CI: &Interval{1.01, 1.2}, Ratio: 1.1, Better: Lower,
		Parts: []PartDifference{part(Typical, 0.01), part(LowestQuarter, 0.0001)},
	}
	c = Judge([]Comparison{c}, Alpha, 0)[0]
	if c.Verdict != Slower || c.By != Typical {
		t.Fatalf("the verdict is %q by the %q", c.Verdict, c.By)
	}
	comparisons := []*Comparison{&c}
	for range 99 {
		comparisons = append(comparisons, &Comparison{P: 0.9})
	}
	JudgeTogether(comparisons, Alpha)
	if !c.Everywhere {
		t.Error("the lowest quarter is shown over all comparisons, and the comparison is not marked")
	}
}

// The p-value of thousands of blocks that agree is below the least number above zero.
func TestThousandsOfBlocks(t *testing.T) {
	targets := run(random(1), tailed, normal, 5000, 1, 2)
	c := Compare(targets[0], targets[1], Lower, 1)
	JudgeTogether([]*Comparison{&c}, Alpha)
	if c.P > 1e-200 || c.Verdict != Slower || c.By != Typical || !c.Everywhere {
		t.Errorf("twice the time in 5000 blocks is %q by %q, everywhere: %v, p = %g", c.Verdict, c.By, c.Everywhere, c.P)
	}
}
