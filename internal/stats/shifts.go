package stats

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// listedShifts is the greatest number of shifts that are listed and sorted by rank. More are counted instead.
const listedShifts = 50_000

// shifts are the pairwise estimates of a shift: the means of all pairs of one sample (Walsh averages), or the
// differences between all values of two samples. Their median is the estimate of Hodges and Lehmann, and the
// interval between two of their order statistics inverts the rank test (J. L. Hodges and E. L. Lehmann, Annals of
// Mathematical Statistics 34 (1963) 598–611; M. Hollander, D. A. Wolfe and E. Chicken, "Nonparametric Statistical
// Methods", 3rd edition, sections 3.2, 3.3, 4.2 and 4.3).
type shifts struct {
	// a and b are sorted. A shift is b[j] − a[i]; of one sample it is the mean of b[i] and b[j], i ≤ j.
	a, b   []float64
	listed []float64
	// counted are places of the search for a rank, which the search for the next rank starts from.
	counted []countedPlace
}

// countedPlace is a number with the count of shifts up to it.
type countedPlace struct {
	value float64
	upTo  int
}

// walshAverages are the means of all pairs of sorted values, each value with itself included.
func walshAverages(sorted []float64) *shifts {
	s := &shifts{b: sorted}
	if s.count() <= listedShifts {
		s.listWalsh(sorted)
	}
	return s
}

// listWalsh lists the means of all pairs of values in any order.
func (s *shifts) listWalsh(values []float64) {
	s.b, s.listed = values, slices.Grow(s.listed[:0], len(values)*(len(values)+1)/2)
	for i, v := range values {
		for _, w := range values[i:] {
			s.listed = append(s.listed, midpoint(v, w))
		}
	}
}

// listLowestWalsh lists the means of pairs of sorted values that can be the mean at index k, or below it. The mean of the values i ≤ j is not below the
// (i+1)·(j+1) − i·(i+1)/2 means of values up to i and up to j, itself included.
func (s *shifts) listLowestWalsh(sorted []float64, k int) {
	s.b, s.listed = sorted, s.listed[:0]
	for i, v := range sorted {
		end := min(len(sorted), (k+1+i*(i+1)/2)/(i+1))
		if end <= i {
			return
		}
		for _, w := range sorted[i:end] {
			s.listed = append(s.listed, midpoint(v, w))
		}
	}
}

// differences are all differences between the values of b and a, which are sorted.
func differences(a, b []float64) *shifts {
	s := &shifts{a: a, b: b}
	if s.count() > listedShifts {
		return s
	}
	s.listed = make([]float64, 0, s.count())
	for _, v := range a {
		for _, w := range b {
			s.listed = append(s.listed, w-v)
		}
	}
	return s
}

// count is the number of shifts.
func (s *shifts) count() int {
	if s.a == nil {
		return len(s.b) * (len(s.b) + 1) / 2
	}
	return len(s.a) * len(s.b)
}

// at is the shift at index k of the sorted shifts.
func (s *shifts) at(k int) float64 {
	if s.listed != nil {
		return selectRank(s.listed, k)
	}
	lo, hi := s.b[0], s.b[len(s.b)-1]
	if s.a != nil {
		lo, hi = lo-s.a[len(s.a)-1], hi-s.a[0]
	}
	lo = math.Nextafter(lo, math.Inf(-1))
	// The search continues until few shifts are above lo and up to hi: as many as there are values. Two of three steps interpolate, to just below and to
	// just above the place, so that both ends come near. The third halves, so that no distribution takes many steps.
	limit := len(s.a) + len(s.b)
	rank, upTo := 0, s.count()
	for _, c := range s.counted {
		if c.upTo <= k && c.value > lo {
			lo, rank = c.value, c.upTo
		} else if c.upTo > k && c.value < hi {
			hi, upTo = c.value, c.upTo
		}
	}
	for step := 0; upTo-rank > limit; step++ {
		middle := midpoint(lo, hi)
		if aim := float64(k-rank) + [...]float64{-0.25, 0.25, 0}[step%3]*float64(limit); step%3 != 2 && aim > 0 {
			if place := lo + aim/float64(upTo-rank)*(hi-lo); place > lo && place < hi {
				middle = place
			}
		}
		if middle <= lo || middle >= hi || hi-lo < 1e-15 {
			return hi // the others between them are equal to it, or differ by less than a measurement shows
		}
		n := s.below(middle)
		s.counted = append(s.counted, countedPlace{middle, n})
		if n > k {
			hi, upTo = middle, n
		} else {
			lo, rank = middle, n
		}
	}
	return selectRank(s.between(lo, hi, upTo-rank), k-rank)
}

// between lists the shifts above lo and up to hi, whose number is count.
func (s *shifts) between(lo, hi float64, count int) []float64 {
	list := make([]float64, 0, count)
	if s.a != nil {
		j := 0
		for _, v := range s.a {
			for j < len(s.b) && s.b[j]-v <= lo {
				j++
			}
			for _, w := range s.b[j:] {
				if w-v > hi {
					break
				}
				list = append(list, w-v)
			}
		}
		return list
	}
	j := len(s.b)
	for i, v := range s.b {
		for j > i && midpoint(v, s.b[j-1]) > lo {
			j--
		}
		for _, w := range s.b[max(i, j):] {
			if midpoint(v, w) > hi {
				break
			}
			list = append(list, midpoint(v, w))
		}
	}
	return list
}

// below counts the shifts up to a limit, in a time that grows with the number of values.
func (s *shifts) below(limit float64) (count int) {
	if s.a != nil {
		j := 0
		for _, v := range s.a {
			for j < len(s.b) && s.b[j]-v <= limit {
				j++
			}
			count += j
		}
		return count
	}
	j := len(s.b)
	for i, v := range s.b {
		for j > i && midpoint(v, s.b[j-1]) > limit {
			j--
		}
		count += max(0, j-i)
	}
	return count
}

// median is the estimate of Hodges and Lehmann.
func (s *shifts) median() float64 {
	n := s.count()
	return midpoint(s.at((n-1)/2), s.at(n/2))
}

// interval excludes k shifts on each side. It is unbounded if k is negative, because the test then rejects no shift.
func (s *shifts) interval(k int) Interval {
	if k < 0 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	return Interval{s.at(k), s.at(s.count() - 1 - k)}
}

// signedRankTails are the lower tails of the distribution of the signed-rank sum without ties, by the number of
// pairs: the probabilities of a sum of at most 0, 1, 2, …
var signedRankTails = func() (tails [exactLimit + 1]func() []float64) {
	for n := range tails {
		tails[n] = sync.OnceValue(func() []float64 { return signedRankTail(n) })
	}
	return tails
}()

func signedRankTail(n int) []float64 {
	probability := make([]float64, n*(n+1)/4+1) // of each sum up to the middle
	probability[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := len(probability) - 1; sum >= 0; sum-- {
			p := probability[sum] / 2
			if sum >= rank {
				p += probability[sum-rank] / 2
			}
			probability[sum] = p
		}
	}
	for sum := 1; sum < len(probability); sum++ {
		probability[sum] += probability[sum-1]
	}
	return probability
}

// signedRankCritical is the greatest signed-rank sum of n pairs that the two-sided test rejects below a level, −1
// without one. Above exactLimit it comes from the normal approximation.
func signedRankCritical(n int, level float64) int {
	if n > exactLimit {
		count := float64(n)
		return rankCritical(count*(count+1)/4, count*(count+1)*(2*count+1)/24, level)
	}
	tail := signedRankTails[n]()
	index, _ := slices.BinarySearchFunc(tail, level, func(p, level float64) int {
		if 2*p < level {
			return -1
		}
		return 1
	})
	return index - 1
}

// mannWhitneyCritical is the same for the U statistic of two samples, from the normal approximation. The exact distribution
// replaces it for few values.
func mannWhitneyCritical(n, m int, level float64) int {
	if n*m <= exactLimit*exactLimit/4 {
		total := 0.0
		for k, p := range mannWhitneyProbabilities(n, m) {
			if total += p; 2*total >= level {
				return k - 1
			}
		}
	}
	product := float64(n) * float64(m)
	return rankCritical(product/2, product*float64(n+m+1)/12, level)
}

// mannWhitneyProbabilities are the probabilities of U = 0, 1, 2, … without ties, from the recurrence of H. B. Mann and
// D. R. Whitney, Annals of Mathematical Statistics 18 (1947) 50–60: the largest value of all belongs to one of the two samples.
func mannWhitneyProbabilities(n, m int) []float64 {
	// rows[i] are the probabilities of i values of the first sample and j of the second, for the j of the loop.
	rows := make([][]float64, n+1)
	for i := range rows {
		rows[i] = []float64{1}
	}
	for j := 1; j <= m; j++ {
		next := make([][]float64, n+1)
		next[0] = []float64{1}
		for i := 1; i <= n; i++ {
			p := make([]float64, i*j+1)
			for u, q := range next[i-1] { // the largest belongs to the first sample, and exceeds all j of the second
				p[u+j] += q * float64(i) / float64(i+j)
			}
			for u, q := range rows[i] {
				p[u] += q * float64(j) / float64(i+j)
			}
			next[i] = p
		}
		rows = next
	}
	return rows[n]
}

// rankCritical is the critical value by the normal approximation with the correction for continuity.
func rankCritical(mean, variance, level float64) int {
	return int(math.Floor(mean - 0.5 - distuv.UnitNormal.Quantile(1-level/2)*math.Sqrt(variance)))
}
