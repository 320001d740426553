package stats

import (
	"math"
	"math/rand/v2"
	"sort"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// generator returns the source of random numbers for a resampling. The sequence is part of
// the definition of PCG. So a seed gives the same report with every Go release, as long as
// gonum does not change the way it draws from its distributions. The stream distinguishes
// the generators of one comparison.
func generator(seed, stream uint64) *rand.PCG { return rand.NewPCG(seed, stream) }

// medianInterval is the interval of the median of values whose dependence increases the variance of the median by a factor
// (see medianInflation): a resample of n/inflation values has the variance of n dependent ones. It is nil below
// MinSamples.
func medianInterval(sorted []float64, inflation float64) *Interval {
	n := len(sorted)
	if n < MinSamples {
		return nil
	}
	stretch := math.Sqrt(float64(n) / float64(n-1))
	tail := distuv.UnitNormal.CDF(-stretch * student(n).Quantile(0.975))
	mirrored := make([]float64, n)
	for i, value := range sorted {
		mirrored[n-1-i] = -value
	}
	size := float64(n-n%2) / inflation
	return &Interval{Lo: resample(sorted, size).quantile(tail), Hi: -resample(mirrored, size).quantile(tail)}
}

// resampledMedian is the distribution of the median of bootstrap resamples. It is exact, so an interval needs no random numbers and no seed.
//
// A resample is x[⌊nU₁⌋], x[⌊nU₂⌋], … for independent uniform U. ⌊n·⌋ is monotonic, so the k-th order statistic of the
// resample is x[⌊nU₍ₖ₎⌋]. The median of 2k values is halfway between the k-th and the next. U₍ₖ₎ has the distribution Beta(k, k+1), and
// P(U₍ₖ₊₁₎ > t | U₍ₖ₎ = u) = ((1−t)/(1−u))ᵏ. So the two have the indices i and more than j ≥ i with the probability
//
//	C(2k, k) · (((i+1)/n)ᵏ − (i/n)ᵏ) · (1 − (j+1)/n)ᵏ
//
// The size 2k is even, n or n−1 without dependence (see Summarize); it need not be whole, because the distributions exist for any k.
type resampledMedian struct {
	sorted []float64
	k      float64
	first  int       // the indices below it, and as many at the other end, have no probability
	logs   []float64 // of (i/n)ᵏ, from first to n−first
	choose float64   // the logarithm of C(2k, k)
}

// leastLog is the logarithm of a probability that changes no sum.
const leastLog = -50

// resample returns the distribution for resamples of size values from sorted.
func resample(sorted []float64, size float64) resampledMedian {
	n := len(sorted)
	m := resampledMedian{sorted: sorted, k: max(1, size/2)}
	factorial, _ := math.Lgamma(2*m.k + 1)
	root, _ := math.Lgamma(m.k + 1)
	m.choose = factorial - 2*root
	m.first = sort.Search(n/2, func(i int) bool {
		return m.choose+m.log(i+1)+m.log(n-i) > leastLog
	})
	m.logs = make([]float64, n-2*m.first+1)
	for i := range m.logs {
		m.logs[i] = m.log(m.first + i)
	}
	return m
}

// log returns the logarithm of (i/n)ᵏ.
func (m *resampledMedian) log(i int) float64 {
	return m.k * math.Log(float64(i)/float64(len(m.sorted)))
}

// atMost returns the probability that the median is at most value.
func (m *resampledMedian) atMost(value float64) float64 {
	n := len(m.sorted)
	count := sort.Search(n, func(i int) bool { return m.sorted[i] > value })
	var excess float64 // the probability that the k-th value is at most value, and the median is not
	j := n - 1 - m.first
	for i := m.first; i < min(count, n-m.first); i++ {
		for midpoint(m.sorted[i], m.sorted[j]) > value {
			j--
		}
		next := m.choose + m.logs[n-1-j-m.first]
		excess += math.Exp(next+m.logs[i+1-m.first]) - math.Exp(next+m.logs[i-m.first])
	}
	return mathext.RegIncBeta(m.k, m.k+1, float64(count)/float64(n)) - excess
}

// quantile returns the least value that the median does not exceed with a probability above share. It halves the range of the
// floating-point numbers.
func (m resampledMedian) quantile(share float64) float64 {
	lo, hi := sortKey(m.sorted[m.first]), sortKey(m.sorted[len(m.sorted)-1-m.first])
	for lo < hi {
		middle := lo + (hi-lo)/2
		if m.atMost(valueOfKey(middle)) > share {
			hi = middle
		} else {
			lo = middle + 1
		}
	}
	return valueOfKey(lo)
}

// student is Student's t distribution for the mean of n values.
func student(n int) distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
}

// selectRank returns the value at index k of the sorted values. It reorders values (Hoare's
// FIND, CACM 4 (1961) 321). A full sort for two values took most of a report's time.
func selectRank(values []float64, k int) float64 {
	lo, hi := 0, len(values)-1
	for lo < hi {
		pivot := values[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return values[k]
		}
	}
	return values[k]
}

// selectMedian returns the median of values, and reorders them.
func selectMedian(values []float64) float64 {
	n := len(values)
	return midpoint(selectRank(values, (n-1)/2), selectRank(values, n/2))
}
