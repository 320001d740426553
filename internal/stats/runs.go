package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// RunsComparison compares two groups of runs, A and B. The runs are the observations: each of them has one value of a metric, such as the
// median of its trials. So the interval covers the variation between runs, which trials of one run cannot show (T. Kalibera and R. Jones,
// "Rigorous Benchmarking in Reasonable Time", ISMM 2013, section 6).
//
// It is a t test of the logarithms, with the wider interval of two: Welch's (B. L. Welch, "The Generalization of Student's Problem When Several
// Different Population Variances Are Involved", Biometrika 34 (1947) 28–35), and Student's with the pooled variance. Welch's test alone has 7 %
// false alarms for 10 and 3 runs of equal variance (TestRunsErrorRates). If one side has a single run, only the pooled variance is left: the
// variance of the other side then stands for both.
type RunsComparison struct {
	// A and B are the numbers of runs.
	A, B int
	// Ratio is B / A, of the geometric means. It is NaN if some value is not positive.
	Ratio float64
	// CI is the 95 % interval of Ratio, nil if fewer than three runs have a value.
	CI *Interval
	// P is the two-sided p-value of the hypothesis that the ratio is 1. It is NaN if CI is nil.
	P float64
	// Pooled is set if one side has a single run.
	Pooled bool
	// Detectable is the smallest relative difference that as many runs with this variation show with a power of 80 %, without a correction
	// for a family: 0.03 is 3 %. It is +Inf without an interval.
	Detectable float64

	effect, se, df float64
	// deviation is the standard deviation of the logarithms between the runs of a side, pooled over both sides.
	deviation float64
}

// CompareRuns compares two groups of runs by one value of each run.
func CompareRuns(a, b []float64) RunsComparison {
	nan := math.NaN()
	c := RunsComparison{A: len(a), B: len(b), Ratio: nan, P: nan, Detectable: math.Inf(1), effect: nan}
	if len(a) == 0 || len(b) == 0 || !positive(a) || !positive(b) {
		return c
	}
	meanA, varianceA := stat.MeanVariance(logarithms(a), nil)
	meanB, varianceB := stat.MeanVariance(logarithms(b), nil)
	c.effect = meanB - meanA
	c.Ratio = math.Exp(c.effect)
	if len(a)+len(b) < 3 {
		return c
	}
	nA, nB := float64(len(a)), float64(len(b))
	c.Pooled = len(a) == 1 || len(b) == 1
	sum := 0.0
	for _, side := range []struct{ n, variance float64 }{{nA, varianceA}, {nB, varianceB}} {
		if side.n > 1 {
			sum += (side.n - 1) * side.variance
		}
	}
	c.deviation = math.Sqrt(sum / (nA + nB - 2))
	c.se, c.df = c.deviation*math.Sqrt(1/nA+1/nB), nA+nB-2
	if partA, partB := varianceA/nA, varianceB/nB; !c.Pooled && !c.constant() {
		// Welch–Satterthwaite
		welch := c
		welch.se = math.Sqrt(partA + partB)
		welch.df = (partA + partB) * (partA + partB) / (partA*partA/(nA-1) + partB*partB/(nB-1))
		if welch.half() > c.half() {
			c = welch
		}
	}
	if c.constant() {
		c.CI, c.P, c.Detectable = &Interval{c.Ratio, c.Ratio}, 1, 0
		separated := min(1, 2*separation(c.A, c.B))
		if math.Abs(c.effect) > roundingError {
			c.P = separated
		}
		if separated >= Alpha {
			c.Detectable = math.Inf(1)
		}
		return c
	}
	t := c.student()
	c.CI = &Interval{math.Exp(c.effect - c.half()), math.Exp(c.effect + c.half())}
	c.P = 2 * t.Survival(math.Abs(c.effect)/c.se)
	c.Detectable = math.Expm1((t.Quantile(0.975) + t.Quantile(Power)) * c.se)
	return c
}

// constant reports whether the runs of each side do not differ. A t test is impossible then, and separation takes its place.
func (c *RunsComparison) constant() bool { return c.deviation <= roundingError }

// separation is the probability that a random division of runs into sides of a and b runs separates their values in one direction. Whole numbers keep
// it exact: 3 and 3 runs have 1/20, which is not below a level of 5 %.
func separation(a, b int) float64 {
	divisions := 1.0
	for i := 1; i <= b; i++ {
		divisions = divisions * float64(a+i) / float64(i)
	}
	return 1 / divisions
}

// half is half of the length of the 95 % interval of the effect.
func (c *RunsComparison) half() float64 { return c.student().Quantile(0.975) * c.se }

func (c *RunsComparison) student() distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: c.df}
}

// above is the one-sided p-value of the hypothesis that the logarithm of the ratio is at most bound.
func (c *RunsComparison) above(bound float64) float64 {
	if c.constant() {
		if c.effect <= bound+roundingError {
			return 1
		}
		return separation(c.A, c.B)
	}
	return c.student().Survival((c.effect - bound) / c.se)
}

// Margin are the p-values of a comparison with a margin. Worse is the p-value of the hypothesis that B is worse than A by at most the margin;
// a small value shows that B is worse by more. NotWorse is the p-value of the opposite hypothesis: a small value shows that B is worse by
// less than the margin, or better. Both are NaN without an interval.
//
// To accept B if each of several metrics shows NotWorse below a level is a test of that level, without a correction: it is an
// intersection–union test (R. L. Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", Technometrics 24 (1982) 295–300). To reject
// B if some of them show Worse needs a correction, such as [Holm].
type Margin struct{ Worse, NotWorse float64 }

// AgainstMargin compares with a margin above 0, a relative difference: 0.03 is 3 %. Worse by 3 % is 1.03 times the value, or 1/1.03 times the
// value if higher values are better.
func (c *RunsComparison) AgainstMargin(margin float64, direction Direction) Margin {
	if c.CI == nil {
		return Margin{math.NaN(), math.NaN()}
	}
	m := *c
	if direction == Higher {
		m.effect = -m.effect
	}
	bound := math.Log1p(margin)
	pValue := m.above(bound)
	m.effect = -m.effect
	return Margin{Worse: pValue, NotWorse: m.above(-bound)}
}

// mostRunsNeeded is the largest answer of RunsNeeded.
const mostRunsNeeded = 1000

// RunsNeeded is the number of runs a side that decides about a margin with a power of 80 %: that B is worse by more, at Alpha divided by the number of metrics
// that are judged together (see [Margin]), or that it is not worse by the margin, at Alpha. It assumes the present ratio and the present variation between
// runs. It is 0 if the variation is not known, if the ratio is the margin itself, or if the number is above 1000.
func (c *RunsComparison) RunsNeeded(margin float64, direction Direction, metrics int) int {
	if c.CI == nil {
		return 0
	}
	loss := c.effect
	if direction == Higher {
		loss = -loss
	}
	distance, level := math.Log1p(margin)-loss, Alpha
	if distance < 0 {
		distance, level = -distance, Alpha/float64(max(1, metrics))
	}
	if distance <= roundingError {
		return 0
	}
	// The normal approximation gives a lower bound.
	estimate := 2 * math.Pow((distuv.UnitNormal.Quantile(1-level)+distuv.UnitNormal.Quantile(Power))*c.deviation/distance, 2)
	for n := max(2, int(min(estimate, mostRunsNeeded+1))); n <= mostRunsNeeded; n++ {
		if c.constant() {
			if separation(n, n) < level {
				return n
			}
			continue
		}
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(2*n - 2)}
		if (t.Quantile(1-level)+t.Quantile(Power))*c.deviation*math.Sqrt(2/float64(n)) <= distance {
			return n
		}
	}
	return 0
}
