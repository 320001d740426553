package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Part is a part of the distribution of a target's values, which can differ while the others do not. Running times
// often have two modes: a change of the fast path alone hardly moves a typical value.
type Part string

// The parts, in the unit of the metric: the lowest quarter of times is the fastest one.
const (
	Typical        Part = "typical value"
	AllValues      Part = "all values"
	LowestQuarter  Part = "lowest quarter"
	LowerHalf      Part = "lower half"
	HighestQuarter Part = "highest quarter"
)

// partWeights are the shares of the error rate that the joint test gives to the parts, in the order of parts. The typical value has
// half of it, and all values a quarter, because most differences show there. The rest is a price of few blocks: with equal shares the joint test needs two blocks more than the
// signed-rank test alone before it can show anything.
var (
	parts       = [...]Part{Typical, AllValues, LowestQuarter, LowerHalf, HighestQuarter}
	partWeights = [...]float64{1. / 2, 1. / 4, 1. / 12, 1. / 12, 1. / 12}
)

// PartDifference is the difference of one part between a target and the baseline.
type PartDifference struct {
	Part Part
	// Ratio of the target to the baseline: of the typical value it is Comparison.Ratio, of all values the median of the quotients of
	// a value of the target and one of the baseline in any two blocks (Hodges and Lehmann), and of another part the ratio of the geometric means of that
	// part of each side.
	Ratio float64
	// P is the p-value of the part, adjusted for the other parts of its comparison. Adjusted is P after Holm's correction over the
	// family of the comparison. Each block that the better side has lost counts as its worst one in Adjusted.
	P, Adjusted float64
	// Larger is set if the statistic of the test is above 0, so that the target has the larger values. Ratio may be exactly 1 all the same, if many values
	// are equal.
	Larger bool
}

// tested is the result of a joint test: for each part the adjusted p-value, the statistic, and the ratio. The test has the smallest of the p-values.
type tested struct{ each, observed, ratio [len(parts)]float64 }

func (t *tested) p() float64 { return slices.Min(t.each[:]) }

// leastP is the least p-value of a test. Quotients of smaller ones would have no value.
const leastP = 1e-300

// differences are the parts of a comparison. typical and overall are the ratios of the typical value and of all values, which a joint test does not know. A part
// whose ratio contradicts its statistic shows nothing.
func (t *tested) differences(typical, overall float64) (out []PartDifference) {
	t.ratio[0], t.ratio[1] = typical, overall
	for i, part := range parts {
		d := PartDifference{Part: part, Ratio: t.ratio[i], P: max(leastP, t.each[i]), Adjusted: math.NaN(), Larger: t.observed[i] > 0}
		if (d.Larger && d.Ratio < 1) || (!d.Larger && d.Ratio > 1) {
			d.P = 1
		}
		out = append(out, d)
	}
	return out
}

const (
	exactSwaps  = 16 // greatest number of blocks for all swaps
	randomSwaps = 100_000
	// The first random swaps suffice if they show a p-value above openP.
	firstSwaps = 2_000
	openP      = 0.1
	// Above mostSwapped blocks linearTest needs no swaps.
	mostSwapped = 300
)

// jointTest is a permutation test of all parts together. Without a difference the two values of a block are exchangeable,
// because the order of the targets in a block is random. So every swap of the labels within blocks is equally likely. Each part has a
// statistic: the typical value the signed-rank sum, all values the sum of the differences of ranks among the values of both sides (the rank transform of
// W. J. Conover and R. L. Iman, The American Statistician 35 (1981) 124–129), and the others a difference of mean logarithms. Each statistic has its own p-value among
// the swaps. P of the test is the share of swaps with a weighted p-value in some part as small as the smallest one observed (P. H.
// Westfall and S. S. Young, "Resampling-Based Multiple Testing", 1993, minP; with the weights of partWeights). The observed labels count as
// one of the swaps (B. Phipson and G. K. Smyth, Statistical Applications in Genetics and Molecular Biology 9 (2010) 39),
// so no p-value is zero.
//
// Up to 16 blocks with a difference the test makes all swaps, and is exact. Above it makes 10⁵ random ones, or only the first 2000 if they
// give a p-value above 0.1. If 10⁵ swaps cannot resolve the p-value of the signed-rank test, P is twice it (the weighted Bonferroni bound), and the
// other parts have the same bound, by a normal distribution with the variance of 2000 swaps. More than 300 blocks have [linearTest].
//
// exact is the greatest number of blocks for all swaps, and swaps the number of random ones: exactSwaps and randomSwaps for a verdict.
func jointTest(s *swapper, exact, swaps int, seed uint64) tested {
	t := tested{observed: s.statistics(s.mask())}
	for i := 2; i < len(parts); i++ {
		t.ratio[i] = math.Exp(t.observed[i] / float64(s.count(i)))
	}
	pValue := signedRankP(s.ranks)
	switch {
	case s.signed == 0:
		t.each = [...]float64{1, 1, 1, 1, 1}
	case pValue/partWeights[0] < 1.0/randomSwaps:
		t.each = s.random(min(firstSwaps, swaps), seed).bounds()
		t.each[0] = pValue / partWeights[0]
	case s.signed <= exact:
		t.each = s.all().judge()
	default:
		t.each = s.random(min(firstSwaps, swaps), seed).judge()
		if t.p() <= openP && swaps > firstSwaps {
			t.each = s.random(swaps, seed).judge()
		}
	}
	return t
}

// smallestP is the smallest p-value of a joint test with a number of blocks that differ.
func smallestP(signed int) float64 {
	if signed <= exactSwaps {
		return min(1, math.Ldexp(1, 1-signed))
	}
	return min(1.0/(randomSwaps+1), math.Ldexp(1, 1-signed)/partWeights[0])
}

// swapper makes swaps of the labels within blocks.
type swapper struct {
	ranks   []float64 // signed ranks of the log ratios; 0 without a sign
	signed  int       // blocks with a sign
	logs    []float64 // the logarithms of both values of all blocks in ascending order
	quarter int
	half    int
	table   []groupSwap // the swaps of each group of blocks, one group after the other
	// second has a bit for each of logs: whether the value is of the second side without a swap. flips has the bits that each entry of table inverts.
	second []uint64
	flips  []uint64
	sides  [2][]uint64 // the bits of both sides in a swap
}

// A swap is composed of the swaps of groups of blocks: a table of all swaps of a group replaces a loop over its blocks.
const (
	groupBlocks = 4
	groupSwaps  = 1 << groupBlocks
)

// groupSwap holds the sums of a group of blocks after a swap. They are multiples of ½, so the order of the additions does not matter.
type groupSwap struct{ ranks, among float64 }

func newSwapper(a, b []float64) *swapper {
	n := len(a)
	s := &swapper{quarter: quarterOf(n), half: halfOf(n)}
	logA, logB := logarithms(a), logarithms(b)
	s.ranks, s.signed = signedRanks(subtracted(logB, logA))
	logs := slices.Concat(logA, logB)
	places := order(logs)
	words := (len(logs) + 63) / 64
	s.second, s.sides = make([]uint64, words), [2][]uint64{make([]uint64, words), make([]uint64, words)}
	positions := make([][2]int, n) // of the two values of each block in logs
	for position, i := range places {
		s.logs = append(s.logs, logs[i])
		positions[i%n][i/n] = position
		if i >= n {
			s.second[position/64] |= 1 << (position % 64)
		}
	}
	s.tabulate(rankDifferences(logA, logB), positions)
	return s
}

// tabulate fills the tables. gaps are the differences of the ranks of both values of a block among all values of both sides.
func (s *swapper) tabulate(gaps []float64, positions [][2]int) {
	n, words := len(s.ranks), len(s.second)
	groups := (n + groupBlocks - 1) / groupBlocks
	s.table, s.flips = make([]groupSwap, groups*groupSwaps), make([]uint64, groups*groupSwaps*words)
	for row := range s.table {
		first := row / groupSwaps * groupBlocks
		for i := first; i < min(first+groupBlocks, n); i++ {
			if row>>(i-first)&1 == 0 {
				s.table[row].ranks += s.ranks[i]
				s.table[row].among += gaps[i]
				continue
			}
			s.table[row].ranks -= s.ranks[i]
			s.table[row].among -= gaps[i]
			for _, position := range positions[i] {
				s.flips[row*words+position/64] |= 1 << (position % 64)
			}
		}
	}
}

// quarterOf and halfOf are the numbers of values in a part of n values.
func quarterOf(n int) int { return (n + 3) / 4 }
func halfOf(n int) int    { return (n + 1) / 2 }

// statistics are the statistics of the parts after the swaps of a mask, one bit a block, as differences of the second side from
// the first.
func (s *swapper) statistics(mask []uint64) (t [len(parts)]float64) {
	first, second := s.sides[0], s.sides[1]
	copy(second, s.second)
	for start := 0; start < len(s.table); start += groupSwaps {
		bit := start / groupSwaps * groupBlocks
		row := start + int(mask[bit/64]>>(bit%64)%groupSwaps)
		t[0] += s.table[row].ranks
		t[1] += s.table[row].among
		for i, flip := range s.flips[row*len(second) : (row+1)*len(second)] {
			second[i] ^= flip
		}
	}
	for i, word := range second {
		first[i] = ^word
	}
	first[len(first)-1] &= ^uint64(0) >> (-len(s.logs) & 63)
	quarterA, halfA := s.lowest(first)
	quarterB, halfB := s.lowest(second)
	t[2], t[3], t[4] = quarterB-quarterA, halfB-halfA, s.highest(second)-s.highest(first)
	return t
}

// rankDifferences are the differences within blocks of the ranks among all values of both sides.
func rankDifferences(logA, logB []float64) []float64 {
	ranks := Midranks(slices.Concat(logA, logB), roundingError)
	return subtracted(ranks[len(logA):], ranks[:len(logA)])
}

// lowest are the sums of the lowest quarter and of the lower half of the logarithms of a side.
func (s *swapper) lowest(side []uint64) (quarter, half float64) {
	count := 0
	for i, word := range side {
		for ; word != 0; word &= word - 1 {
			half += s.logs[i*64+bits.TrailingZeros64(word)]
			if count++; count == s.quarter {
				quarter = half
			}
			if count == s.half {
				return quarter, half
			}
		}
	}
	return quarter, half
}

// highest is the sum of the highest quarter of the logarithms of a side.
func (s *swapper) highest(side []uint64) (sum float64) {
	count := 0
	for i, word := range slices.Backward(side) {
		for word != 0 {
			top := bits.Len64(word) - 1
			sum += s.logs[i*64+top]
			if count++; count == s.quarter {
				return sum
			}
			word &^= 1 << top
		}
	}
	return sum
}

// mask is a mask without a swap.
func (s *swapper) mask() []uint64 { return make([]uint64, len(s.ranks)/64+1) }

// count is the number of values of a part.
func (s *swapper) count(part int) int {
	return [...]int{len(s.ranks), len(s.ranks), s.quarter, s.half, s.quarter}[part]
}

// swapped are the sizes of the statistics of all swaps. The first swap is the observed one.
type swapped [len(parts)][]float64

// all makes every swap of the blocks that differ. Swapping all blocks changes only signs, so the first of these blocks stays.
func (s *swapper) all() swapped {
	var out swapped
	var indices []int
	for i, rank := range s.ranks {
		if rank != 0 {
			indices = append(indices, i)
		}
	}
	for i := range out {
		out[i] = make([]float64, 0, 1<<(len(indices)-1))
	}
	mask := s.mask()
	for set := range uint64(1) << (len(indices) - 1) {
		clear(mask)
		for rest := set; rest != 0; rest &= rest - 1 {
			i := indices[bits.TrailingZeros64(rest)+1]
			mask[i/64] |= 1 << (i % 64)
		}
		out.add(s.statistics(mask))
	}
	return out
}

// random makes the observed swap and a number of random ones.
func (s *swapper) random(count int, seed uint64) swapped {
	var out swapped
	for i := range out {
		out[i] = make([]float64, 0, count+1)
	}
	source := rand.New(generator(seed, 2))
	mask := s.mask()
	out.add(s.statistics(mask))
	for range count {
		for i := range mask {
			mask[i] = source.Uint64()
		}
		out.add(s.statistics(mask))
	}
	return out
}

// add adds the sizes of the statistics of a swap. Sizes that differ only by the order of a sum are made equal.
func (s *swapped) add(t [len(parts)]float64) {
	for i, v := range t {
		s[i] = append(s[i], math.Round(math.Abs(v)/roundingError)*roundingError)
	}
}

// judge returns the p-value of each part after the adjustment for the others.
func (s swapped) judge() (out [len(parts)]float64) {
	n := float64(len(s[0]))
	var limits [len(parts)]float64
	for i, sizes := range s {
		hits := 0
		for _, v := range sizes {
			if v >= sizes[0] {
				hits++
			}
		}
		limits[i] = float64(hits) / n / partWeights[i]
	}
	critical := s.criticals(limits)
	for i, limit := range limits {
		out[i] = 1
		if limit < 1 { // a larger one is no p-value
			out[i] = s.share(critical[i])
		}
	}
	return out
}

// bounds returns the weighted Bonferroni bounds of the p-values of the parts, by a normal distribution with the variance of the swaps.
func (s swapped) bounds() (out [len(parts)]float64) {
	for i := range s {
		statistic, rest := s[i][0], s[i][1:]
		out[i] = 1
		if variance := floats.Dot(rest, rest) / float64(len(rest)); variance > 0 {
			out[i] = min(1, 2*upperTail(statistic/math.Sqrt(variance))/partWeights[i])
		}
	}
	return out
}

// share is the share of the swaps whose size in some part is critical.
func (s swapped) share(critical [len(parts)]float64) float64 {
	count := 0
	for swap := range s[0] {
		for i := range s {
			if s[i][swap] >= critical[i] {
				count++
				break
			}
		}
	}
	return float64(count) / float64(len(s[0]))
}

// criticals returns for each limit and each part the smallest size with a weighted p-value of at most the limit. The p-value of a size is the share of sizes
// that reach it. The k largest sizes have a p-value of at most k/n.
func (s swapped) criticals(limits [len(parts)]float64) (critical [len(parts)][len(parts)]float64) {
	n := len(s[0])
	sizes := make([]float64, n)
	for part := range s {
		copy(sizes, s[part])
		for i, limit := range limits {
			critical[i][part] = math.Inf(1)
			if limit < 1 {
				critical[i][part] = criticalSize(sizes, int(math.Floor(limit*partWeights[part]*float64(n)+roundingError)))
			}
		}
	}
	return critical
}

// criticalSize is the smallest size that at most k sizes reach. It reorders the sizes.
func criticalSize(sizes []float64, k int) float64 {
	next := selectRank(sizes, len(sizes)-1-k) // the largest size that more than k sizes reach
	minimum := math.Inf(1)
	for _, v := range sizes[len(sizes)-k:] { // the others are not above next
		if v > next {
			minimum = min(minimum, v)
		}
	}
	return minimum
}
