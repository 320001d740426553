package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Turn is the value of a target in a block, with the target before it. Targets are numbers from 0, and some may have no values; Before is −1 for
// the first of a block.
type Turn struct {
	Block, Target, Before int
	Value                 float64
}

// CarryOver is the dependence of values on the target before: a target may leave a warm cache, a busy daemon or a hot CPU to the next.
type CarryOver struct {
	// P is the p-value of the test. It is 1 without enough values to test.
	P float64
	// Target has values that are Ratio times as large after Before, in Count blocks, as in its other blocks. It is the largest
	// effect over all pairs with at least three blocks.
	Target, Before, Count int
	Ratio                 float64
}

// Numbers of permutations. The first few suffice if they show a large p-value.
const (
	carryOverFirst = 500
	carryOverMost  = 20_000
	carryOverOpen  = 0.05
	leastFollowed  = 3
	// carryOverExact is the greatest number of values for permutations. For more, H has its limiting distribution, chi-squared.
	carryOverExact = 2_000
)

// FindCarryOver tests whether the values of the targets depend on the target before. Each value is relative to its target and its block, as
// logarithms. The statistic is the sum over the targets of the H of W. H. Kruskal and W. A. Wallis (JASA 47 (1952) 583–621) for the groups of values
// after the same target. The order of the targets is random in each block, so that without carry-over the targets before are exchangeable between the
// blocks of a target, and the p-value is exact but for the number of permutations (Phipson and Smyth 2010). Above 2000 values it comes from the chi-squared distribution.
//
// A target with a value that is not positive and finite has no ratios, so its values are not tested. It still comes before others. To leave out only
// these values was rejected: the ratio would hide the values that differ most.
func FindCarryOver(turns []Turn, seed uint64) CarryOver {
	zero := CarryOver{P: 1}
	untested := map[int]bool{}
	for _, t := range turns {
		if !(t.Value > 0) || math.IsInf(t.Value, 0) {
			untested[t.Target] = true
		}
	}
	turns = slices.DeleteFunc(slices.Clone(turns), func(t Turn) bool { return untested[t.Target] })
	targets := map[int][]int{} // indices of turns by target
	for i, t := range turns {
		targets[t.Target] = append(targets[t.Target], i)
	}
	if len(turns) < 2*MinSamples || len(targets) < 2 {
		return zero
	}
	distances := residuals(turns)
	var series []followed
	for target := range targetsOf(turns) {
		if len(targets[target]) == 0 {
			continue
		}
		group := followed{}
		for _, i := range targets[target] {
			group.values, group.before = append(group.values, distances[i]), append(group.before, turns[i].Before+1)
		}
		group.ranks = Midranks(group.values, roundingError)
		series = append(series, group)
	}
	random := rand.New(generator(seed, 4))
	statistic, freedom := totalH(series)
	if len(turns) > carryOverExact {
		found := largest(turns, distances)
		found.P = distuv.ChiSquared{K: max(1, freedom)}.Survival(statistic)
		return found
	}
	hits, count := 1, 1
	for _, limit := range []int{carryOverFirst, carryOverMost} {
		for ; count < limit; count++ {
			for _, s := range series {
				random.Shuffle(len(s.before), func(i, j int) { s.before[i], s.before[j] = s.before[j], s.before[i] })
			}
			if h, _ := totalH(series); h >= statistic*(1-roundingError) {
				hits++
			}
		}
		if float64(hits)/float64(count) > carryOverOpen {
			break
		}
	}
	found := largest(turns, distances)
	found.P = float64(hits) / float64(count)
	return found
}

// followed are the values of one target with the target before each, from 1.
type followed struct {
	values, ranks []float64
	before        []int
}

// targetsOf is the number of targets, with those that come before others and have no values.
func targetsOf(turns []Turn) int {
	targets := 0
	for _, t := range turns {
		targets = max(targets, t.Target+1, t.Before+1)
	}
	return targets
}

// residuals are the logarithms of the values relative to their targets, and then to the other targets of their blocks.
func residuals(turns []Turn) []float64 {
	distances := make([]float64, len(turns))
	for i, t := range turns {
		distances[i] = math.Log(t.Value)
	}
	targets := targetsOf(turns)
	sums, counts := make([]float64, targets), make([]float64, targets)
	for i, t := range turns {
		sums[t.Target] += distances[i]
		counts[t.Target]++
	}
	type total struct{ sum, count float64 }
	var totals []total
	indices, blocks := map[int]int{}, make([]int, len(turns)) // of the block of each turn in totals
	for i, t := range turns {
		index, ok := indices[t.Block]
		if !ok {
			index = len(totals)
			indices[t.Block], totals = index, append(totals, total{})
		}
		distances[i] -= sums[t.Target] / counts[t.Target]
		blocks[i] = index
		totals[index].sum += distances[i]
		totals[index].count++
	}
	for i := range turns {
		block := totals[blocks[i]]
		if rest := block.count - 1; rest > 0 {
			distances[i] -= (block.sum - distances[i]) / rest
		}
	}
	return distances
}

// totalH is the sum of the H of all targets, with its degrees of freedom.
func totalH(series []followed) (total, freedom float64) {
	for _, s := range series {
		var sums, counts [64]float64
		for i, b := range s.before {
			sums[b%64] += s.ranks[i]
			counts[b%64]++
		}
		n := float64(len(s.ranks))
		freedom--
		for b, count := range counts {
			if count > 0 {
				d := sums[b]/count - (n+1)/2
				total += 12 / (n * (n + 1)) * count * d * d
				freedom++
			}
		}
	}
	return total, freedom
}

// largest is the largest effect of a target on another.
func largest(turns []Turn, distances []float64) CarryOver {
	targets := targetsOf(turns)
	sums, counts := make([]float64, targets*(targets+1)), make([]int, targets*(targets+1)) // by target and the one before
	totals, sizes := make([]float64, targets), make([]int, targets)
	for i, t := range turns {
		p := t.Target*(targets+1) + t.Before + 1
		sums[p] += distances[i]
		counts[p]++
		totals[t.Target] += distances[i]
		sizes[t.Target]++
	}
	found := CarryOver{Ratio: 1}
	for p, n := range counts {
		target, predecessor := p/(targets+1), p%(targets+1)-1
		rest := sizes[target] - n
		if n < leastFollowed || rest < leastFollowed {
			continue
		}
		log := sums[p]/float64(n) - (totals[target]-sums[p])/float64(rest)
		if math.Abs(log) > math.Abs(math.Log(found.Ratio)) {
			found = CarryOver{Target: target, Before: predecessor, Count: n, Ratio: math.Exp(log)}
		}
	}
	return found
}
