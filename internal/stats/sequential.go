package stats

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// lookGrowth is the factor between the numbers of blocks of two looks. With 1.5 a decision waits longer for its look, and a difference of 10 % at
	// a variation of 14 % takes 12 % more blocks. With 1.1 it takes 5 % fewer, for looks that take time themselves.
	lookGrowth = 1.15
	// nearLook is the factor within which two looks count as one.
	nearLook = 1.02
)

// Looks are the numbers of blocks for the tests of a rule. The first is at least MinSamples, the last is limit, and the intervals
// between them grow. They are fixed before the run.
func Looks(first, limit int) []int {
	var looks []int
	for n := max(first, MinSamples); float64(n)*lookGrowth <= float64(limit); n = int(math.Ceil(float64(n) * lookGrowth)) {
		looks = append(looks, n)
	}
	return append(looks, limit)
}

// Sequential converts p-values of a comparison that is tested at several looks while the run goes on. A test at the level of 5 % at each of ten looks
// would find a false difference in some 20 % of the runs.
//
// The looks together may spend an error of O'Brien and Fleming's type (K. K. G. Lan and D. L. DeMets, Biometrika 70 (1983) 659–663). After the
// share t of the blocks it is
//
//	α(t) = 2 − 2Φ(z/√t),  z the upper α/2 quantile of the normal distribution,
//
// so early looks need very small p-values, and the last look loses little. The authors state it for one side; here both sides share it. Programs that spend half
// of the error on each side (TestPublishedBoundaries) need 14 % more blocks for an early decision. The boundaries follow by
// recursive integration (P. Armitage, C. K. McPherson and B. C. Rowe, Journal of the Royal Statistical Society A 132 (1969) 235–244).
//
// The methods are safe for concurrent use.
type Sequential struct {
	looks []int
	mu    sync.Mutex
	plans map[lookKey]*boundary
}

type lookKey struct {
	blocks int
	last   bool
}

// NewSequential returns the rule with these looks. There is at least one.
func NewSequential(looks []int) *Sequential {
	return &Sequential{looks: slices.Clone(looks), plans: map[lookKey]*boundary{}}
}

// At returns the look of a comparison after a number of blocks. This number need not be one of the rule's looks: a budget may end a run at any
// time. last is set if no look can follow, for a reason that has nothing to do with the values. The look then spends all the error that is left.
func (s *Sequential) At(blocks int, last bool) *Look {
	limit := s.looks[len(s.looks)-1]
	blocks = max(1, min(blocks, limit))
	last = last || blocks == limit
	s.mu.Lock()
	defer s.mu.Unlock()
	key := lookKey{blocks, last}
	b := s.plans[key]
	if b == nil {
		b = &boundary{last: last, levels: map[int]float64{}}
		for _, n := range s.looks {
			if float64(n)*nearLook < float64(blocks) {
				b.shares = append(b.shares, float64(n)/float64(limit))
			}
		}
		b.shares = append(b.shares, float64(blocks)/float64(limit))
		s.plans[key] = b
	}
	return &Look{Blocks: blocks, Last: last, boundary: b}
}

// Look is one look of a [Sequential] rule. A nil Look is the only look of a run with a fixed number of blocks.
type Look struct {
	Blocks   int
	Last     bool
	boundary *boundary
}

// P converts the p-value of a test at this look to a p-value of all looks together: the least error of the whole rule that lets this look reject.
// The chance that it is at most α at any look is at most α, whenever the comparison stops (C. Jennison and B. W. Turnbull, "Group
// Sequential Methods", 2000, section 9.5). Thus Holm's correction applies to it. It is never below 1e-12.
func (l *Look) P(p float64) float64 {
	if l == nil || math.IsNaN(p) {
		return p
	}
	return max(p, l.boundary.overall(p))
}

// Level is the level of the test at this look if the whole rule has a level.
func (l *Look) Level(level float64) float64 {
	if l == nil {
		return level
	}
	return min(level, l.boundary.level(level))
}

// apply converts the p-values of a comparison to p-values of the rule.
func (l *Look) apply(c *Comparison) {
	c.Look = l
	c.P, c.MinP = l.P(c.P), l.P(c.MinP)
	c.Parts = slices.Clone(c.Parts)
	for i := range c.Parts {
		c.Parts[i].P = l.P(c.Parts[i].P)
	}
}

// AtLook returns the comparison with the p-values and the verdict of a look, for a family of one.
func (c Comparison) AtLook(l *Look) Comparison {
	if l == nil || c.CI == nil {
		return c
	}
	l.apply(&c)
	return Judge([]Comparison{c}, Alpha, 0)[0]
}

// Precise reports whether the interval of the ratio is within ± precision of it, as a factor. With a precision of 0 all pairs must be equal: an interval
// without a width may come from many equal pairs among others.
func (c *Comparison) Precise(precision float64) bool {
	if precision == 0 {
		return c.CI != nil && !slices.ContainsFunc(c.LogRatios, func(v float64) bool { return math.Abs(v) > roundingError })
	}
	return c.CI != nil && math.Sqrt(c.CI.Hi/c.CI.Lo)-1 <= precision
}

const (
	// errorSteps is the number of entries for a factor of ten of the overall error. The tables begin at 10^(−1/2) and end at leastError = 10^(−12). A rule
	// with a greater error would spend it at the first looks, and its later levels would be smaller again.
	errorSteps = 4
	firstEntry = errorSteps / 2
	lastEntry  = 12 * errorSteps
	leastError = 1e-12
)

// boundary converts between the error of the whole rule and the level of its last look. levels holds the levels by the entry of the table.
// Values between entries, and between the first entry and 1, are interpolated in logarithms.
type boundary struct {
	shares []float64 // of the blocks, up to this look
	last   bool
	mu     sync.Mutex
	levels map[int]float64
}

// entry is the level of the look for the overall error 10^(−i/errorSteps).
func (b *boundary) entry(i int) float64 {
	if i < firstEntry {
		return 1
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	level, ok := b.levels[i]
	if !ok {
		levels := lookLevels(b.shares, spending(b.shares, math.Pow(10, -float64(i)/errorSteps), b.last))
		level = levels[len(levels)-1]
		b.levels[i] = level
	}
	return level
}

// next is the entry after i.
func next(i int) int { return max(i+1, firstEntry) }

// level is the level of the look for an overall error.
func (b *boundary) level(overall float64) float64 {
	position := -math.Log10(max(leastError, min(1, overall))) * errorSteps
	i := min(int(position), lastEntry-1)
	if i < firstEntry {
		i = 0
	}
	hi, lo := b.entry(i), b.entry(next(i))
	if lo == 0 {
		return 0
	}
	return math.Exp(math.Log(hi) + (position-float64(i))/float64(next(i)-i)*(math.Log(lo)-math.Log(hi)))
}

// overall is the inverse of level.
func (b *boundary) overall(p float64) float64 {
	if p <= b.entry(lastEntry) {
		return leastError
	}
	i, end := 0, lastEntry // entry(i) >= p > entry(end)
	for end > next(i) {
		if middle := (i + end) / 2; b.entry(middle) >= p {
			i = middle
		} else {
			end = middle
		}
	}
	if i < firstEntry {
		i = 0
	}
	hi, lo := b.entry(i), b.entry(end)
	position := float64(end)
	if lo > 0 {
		position = float64(i) + float64(end-i)*(math.Log(hi)-math.Log(p))/(math.Log(hi)-math.Log(lo))
	}
	return math.Pow(10, -position/errorSteps)
}

// spent is the error that the rule may have spent after a share of the blocks.
func spent(share, overall float64) float64 {
	return min(overall, 2*upperTail(-distuv.UnitNormal.Quantile(overall/2)/math.Sqrt(share)))
}

func upperTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// spending are the errors that the rule may have spent after each look. With last, the last look spends the rest of the overall error whatever its share.
func spending(shares []float64, overall float64, last bool) []float64 {
	var errors []float64
	for _, share := range shares {
		errors = append(errors, spent(share, overall))
	}
	if last {
		errors[len(errors)-1] = overall
	}
	return errors
}

// lookLevels are the two-sided levels of the tests at looks that spend errors. shares are the shares of the blocks, ascending up to 1.
//
// A test statistic moves from look to look like a Brownian motion at the times shares. density holds, on the points of a grid up to the boundary, the
// density of a motion that no earlier look has stopped. It is symmetric, so each point from 0 on also stands for its mirror image. The
// points have Simpson's weights.
func lookLevels(shares, errors []float64) []float64 {
	var levels []float64
	var points, density []float64 // of the motion at the look before; the density times the weight of its point
	var previous, spentBefore float64
	for k, share := range shares {
		step := math.Sqrt(share - previous)
		tail := func(limit float64) (p float64) { // the probability of a motion beyond ± limit at this look
			if k == 0 {
				return 2 * upperTail(limit/step)
			}
			for i, x := range points {
				p += density[i] * (upperTail((limit-x)/step) + upperTail((limit+x)/step))
			}
			return p
		}
		limit := boundaryAt(tail, errors[k]-spentBefore, share)
		levels = append(levels, 2*upperTail(limit/math.Sqrt(share)))
		if k == len(shares)-1 {
			break
		}
		next := math.Sqrt(shares[k+1] - share)
		grid, weights := simpson(min(limit, 9*math.Sqrt(share)), max(0.02*math.Sqrt(share), min(0.1*math.Sqrt(share), next/3)))
		update := make([]float64, len(grid))
		for j, y := range grid {
			if k == 0 {
				update[j] = 2 * normalDensity(y/step) / step
			} else {
				for i, x := range points {
					update[j] += density[i] * (normalDensity((y-x)/step) + normalDensity((y+x)/step)) / step
				}
			}
			update[j] *= weights[j]
		}
		points, density = grid, update
		previous, spentBefore = share, errors[k]
	}
	return levels
}

func normalDensity(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }

// boundaryAt is the limit beyond which a motion has a probability, +Inf for none.
func boundaryAt(tail func(limit float64) float64, probability, share float64) float64 {
	lo, hi := 0.0, 40*math.Sqrt(share)
	switch {
	case probability <= tail(hi):
		return math.Inf(1)
	case probability >= tail(lo):
		return lo
	}
	for range 60 {
		if middle := (lo + hi) / 2; tail(middle) > probability {
			lo = middle
		} else {
			hi = middle
		}
	}
	return hi
}

// simpson returns points from 0 to end, at most a step apart, with the weights of Simpson's rule.
func simpson(end, step float64) (points, weights []float64) {
	half := max(1, int(math.Ceil(end/step/2)))
	h := end / float64(2*half)
	for i := range 2*half + 1 {
		weight := 2 * h / 3
		if i%2 == 1 {
			weight = 4 * h / 3
		}
		if i == 0 || i == 2*half {
			weight = h / 3
		}
		points, weights = append(points, float64(i)*h), append(weights, weight)
	}
	return points, weights
}
