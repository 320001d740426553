package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Limits of the work of [SmallestDelay].
const (
	delayRuns   = 100
	delaySwaps  = 499
	delayExact  = 9   // greatest number of blocks for all swaps: 256 swaps
	delayBlocks = 200 // greatest number of simulated blocks without an extrapolation
)

// SmallestDelay is the smallest delay that the verdict of a run of n blocks shows with a probability of [Power], in the unit of the values.
// A delay is an amount that is added to each value of one of two equal targets: slower code adds the same time to fast and slow
// values, while a factor would delay a slow mode more. baseline and twin are the values of the equal targets by run. spread is the
// standard deviation of their log ratio from run to run (see [BetweenRuns]); NaN counts as 0.
//
// The run is simulated 100 times. A simulated run has n blocks, drawn with replacement from the blocks of all runs. The two labels of each
// block are random, so a chance difference of the equal targets does not count as a delay, and the log ratios keep their full variance. One
// side is multiplied by a random factor exp(N(0, spread²)) and then delayed. The code of [Compare] judges the run at [Alpha],
// with 499 swaps. A run shows the delay if its verdict is [Slower]. All delays are tried on the same simulated runs. The power of 100
// runs has a standard error of 4 %, which is an error of 5 % in the delay. The noise adds its own error: 7 % with 175 blocks, 15 % with
// 50, and a factor of two with 10.
//
// The verdict of one run has no allowance for the variation between runs. A large variation causes false alarms, and it moves the result much less than it moves a
// comparison of several runs ([CompareRuns]).
//
// The runs are pooled as they are. We rejected a division of each run by its own ratio, because this ratio is uncertain: by a tenth in 30 blocks
// of times with modes at 6 and 14 ms. The division would blur the modes, and a delay of 2 % would be lost.
//
// More than 200 blocks are extrapolated from 301, because [linearTest] takes little time. Sampling errors fall with 1/√n, so the result is the delay of
// 301 blocks times √(301/n), with a spread of √(n/301) times the given one.
//
// The result is NaN if n or the number of blocks in the runs is below [MinSamples], or if a value is not positive. It is 0 if a millionth of the
// median is shown, because the values have no noise.
func SmallestDelay(baseline, twin [][]Sample, spread float64, n int, seed uint64) float64 {
	var a, b []float64
	for i := range baseline {
		x, y := pair(baseline[i], twin[i])
		a, b = append(a, x...), append(b, y...)
	}
	if min(n, len(a)) < MinSamples || !positive(a) || !positive(b) {
		return math.NaN()
	}
	if math.IsNaN(spread) {
		spread = 0
	}
	blocks := n
	if n > delayBlocks {
		blocks = mostSwapped + 1
	}
	scale := math.Sqrt(float64(n) / float64(blocks))
	runs := simulateRuns(a, b, spread*scale, blocks, seed)
	shows := func(i int, delay float64) bool { return runs[i].shows(delay, seed+uint64(i)) }

	typical := Median(a)
	distances := subtracted(b, a)
	for i, d := range distances {
		distances[i] = math.Abs(d)
	}
	start := max(2*Median(distances)/math.Sqrt(float64(blocks)), typical/1000)
	floor, ceiling := 1e-6*typical, 1e6*typical
	const pilot = 16 // runs for a first estimate
	first := smallestShown(shows, pilot, shownSearch{start, 4, 1.3, floor, ceiling})
	if math.IsNaN(first) {
		return first
	}
	delay := smallestShown(shows, delayRuns, shownSearch{max(first, floor), 1.15, 1.02, floor, ceiling})
	return delay / scale
}

// equalRun are the values of a run of two equal targets.
type equalRun struct{ baseline, other []float64 }

// simulateRuns draws runs with a number of blocks. spread is the standard deviation of the logarithm of a factor of the other side.
func simulateRuns(a, b []float64, spread float64, blocks int, seed uint64) []equalRun {
	random := rand.New(generator(seed, 5))
	runs := make([]equalRun, delayRuns)
	for i := range runs {
		factor := math.Exp(spread * random.NormFloat64())
		for range blocks {
			index := random.IntN(len(a))
			x, y := a[index], b[index]
			if random.Uint64()&1 == 0 {
				x, y = y, x
			}
			runs[i].baseline, runs[i].other = append(runs[i].baseline, x), append(runs[i].other, y*factor)
		}
	}
	return runs
}

// shows reports whether the verdict about the run is [Slower] if the other side is delayed.
func (r *equalRun) shows(delay float64, seed uint64) bool {
	values := slices.Clone(r.other)
	for i := range values {
		values[i] += delay
	}
	c := newComparison(r.baseline, values, Lower)
	c.LogRatios, c.Seed = subtracted(logarithms(values), logarithms(r.baseline)), seed
	c.Ratio = 1 // the statistic alone gives the direction of the typical value
	c.test(r.baseline, values, delayExact, delaySwaps)
	if c.P >= Alpha {
		return false
	}
	c.Adjusted = c.P
	for i := range c.Parts {
		c.Parts[i].Adjusted = c.Parts[i].P
	}
	return c.verdict(Alpha, Alpha, 0) == Slower
}

// shownSearch are the parameters of [smallestShown].
type shownSearch struct {
	start float64 // first size
	step  float64 // factor from size to size before the result is between two sizes
	// precision is the factor between the two sizes at the end.
	precision   float64
	least, most float64
}

// smallestShown is the smallest size that a share of Power of the simulated runs shows. A run that shows a size is assumed to show all larger ones, so
// each size is tried only on the runs that are still open. The result is 0 if the least size is shown, and NaN if the greatest is not shown.
func smallestShown(shows func(run int, size float64) bool, count int, s shownSearch) float64 {
	open := make([]int, count)
	for i := range open {
		open[i] = i
	}
	quota := int(math.Ceil(Power * float64(count)))
	lo, hi, size := 0.0, math.Inf(1), s.start
	for {
		var hits, misses []int
		for _, i := range open {
			if shows(i, size) {
				hits = append(hits, i)
			} else {
				misses = append(misses, i)
			}
		}
		if len(hits) >= quota {
			hi, open = size, hits
		} else {
			lo, open, quota = size, misses, quota-len(hits)
		}
		switch {
		case hi <= s.least:
			return 0
		case lo >= s.most:
			return math.NaN()
		case lo == 0:
			size = hi / s.step
		case math.IsInf(hi, 1):
			size = lo * s.step
		case hi <= lo*s.precision:
			return hi
		default:
			size = math.Sqrt(lo * hi)
		}
	}
}

// BetweenRuns is the standard deviation of the log ratio of equal targets from run to run, apart from the variation within runs (Tau of
// [Pool]). baseline and twin are their values by run. Runs with fewer than [MinSamples] blocks do not count. It is NaN below two
// runs and without noise.
//
// The estimate comes from the part of the distribution with the smallest standard error within runs, because this part shows the smallest
// delays. A typical value of times with two modes has a large error, and by chance its Tau is as large: a tenth in 30 blocks with modes at 6 and
// 14 ms. No delay of 2 % would be found beside it. The standard error of the typical value follows from its interval, and
// of a quarter or half from random swaps of the labels.
func BetweenRuns(baseline, twin [][]Sample, seed uint64) float64 {
	var effects [len(parts)][]Effect
	var blocks []int
	for i := range baseline {
		a, b := pair(baseline[i], twin[i])
		if len(a) < MinSamples || !positive(a) || !positive(b) {
			continue
		}
		blocks = append(blocks, len(a))
		for k, e := range partEffects(a, b, seed) {
			effects[k] = append(effects[k], e)
		}
	}
	if len(blocks) < 2 {
		return math.NaN()
	}
	minimum, tau := math.Inf(1), math.NaN()
	for k := range effects {
		estimates := ShareNoise(effects[k], blocks)
		if se := estimates[0].SE; se > 0 && se < minimum {
			minimum, tau = se, Pool(estimates).Tau
		}
	}
	return tau
}

// partEffects are the log ratios of the parts with their standard errors. All values have none.
func partEffects(a, b []float64, seed uint64) (effects [len(parts)]Effect) {
	c := newComparison(a, b, Lower)
	walsh := walshAverages(Sorted(subtracted(logarithms(b), logarithms(a))))
	c.estimate(walsh.interval(signedRankCritical(c.N, 1-Level)))
	s := newSwapper(a, b)
	sums, swaps := s.statistics(s.mask()), s.random(delaySwaps, seed)
	for k, sum := range sums {
		rest := swaps[k][1:]
		variance := floats.Dot(rest, rest) / float64(len(rest))
		effects[k] = Effect{sum / float64(s.count(k)), math.Sqrt(variance) / float64(s.count(k))}
	}
	effects[0] = Effect{walsh.median(), c.LogSE}
	effects[1] = Effect{} // the sum of ranks is no log ratio
	return effects
}
