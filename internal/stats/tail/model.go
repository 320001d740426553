package tail

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Test names a condition of a bound.
type Test string

// The tests. A refusal names the first failed one.
const (
	Validity     Test = "validity"            // the samples are finite and not negative, and differ
	Exceedances  Test = "exceedances"         // at least MinExceedances clusters
	Drift        Test = "drift"               // the rate and the size of exceedances do not change over the series
	Independence Test = "independence"        // clusters do not depend on earlier clusters
	Resolution   Test = "resolution"          // most of the excesses differ
	Stability    Test = "threshold stability" // from some threshold on, the excesses have one generalised Pareto distribution
	Heaviness    Test = "tail weight"         // the tail has a finite variance
	Range        Test = "range"               // the probability is at most Decades beyond 1/N
)

// Refusal is the reason why a series has no bound.
type Refusal struct {
	Test    Test   `json:"test" doc:"The first test that failed."`
	Reason  string `json:"reason" doc:"The figures of the test."`
	Advice  string `json:"advice" doc:"The remedy."`
	Samples int    `json:"samples_needed,omitempty" doc:"Least number of samples that would do; absent if more samples of the same kind do not help."`
}

// Error implements error.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("no bound, by the test of %s: %s; %s", r.Test, r.Reason, r.Advice)
	if r.Samples > 0 {
		text += fmt.Sprintf(" (at least %d samples)", r.Samples)
	}
	return text
}

// Model is the tail of a series above a threshold.
type Model struct {
	N   int
	Max float64
	// Threshold has Exceedances samples above it, in Clusters. ExtremalIndex is the reciprocal of the mean size of a cluster.
	Threshold     float64
	Exceedances   int
	Clusters      int
	ExtremalIndex float64
	// GPD is the distribution of the excesses of the clusters' largest values. Shape has an interval.
	GPD       GPD
	ShapeCI   stats.Interval
	Variation Variation
	// excesses are the fitted values.
	excesses []float64
}

// Bound is a value that one sample exceeds with probability P.
type Bound struct {
	P     float64
	Value float64
	// CI is the 95 % profile-likelihood interval of Value. Its upper end is the cautious bound.
	CI stats.Interval
}

// candidate is a threshold with its clusters.
type candidate struct {
	threshold float64
	samples   Series
	index     float64
	clusters  Series
}

// Fit returns the model of a series, or a [*Refusal].
//
// The candidates for the threshold have a twentieth of the samples above them (at most 1000, and at most the values of s) and fewer, down to MinExceedances
// clusters. The lowest one with a stable tail is chosen: the excesses fit the distribution, and its shape does not change for the upper half. Each
// candidate is declustered anew.
func Fit(s Series) (*Model, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	candidates, err := s.candidates()
	if err != nil {
		return nil, err
	}
	choice, m, unstable := -1, (*Model)(nil), error(nil)
	for i, c := range candidates {
		if m, unstable = c.model(s); unstable == nil {
			choice = i
			break
		}
	}
	// A series that is not stationary is also unstable, and this is then the reason to name. The lowest threshold shows it best.
	if err := candidates[max(0, choice)].stationary(); err != nil {
		return nil, err
	}
	if unstable != nil {
		return nil, unstable
	}
	if err := m.finiteVariance(); err != nil {
		return nil, err
	}
	return m, nil
}

func (s Series) validate() error {
	for i, v := range s.Values {
		if !finite(v) || v < 0 {
			return &Refusal{Test: Validity, Reason: fmt.Sprintf("sample %d is %v", s.At[i]+1, v), Advice: "a time is a finite number from 0 on: find the fault in the measurement"}
		}
	}
	if len(s.Values) > 1 && slices.Min(s.Values) == s.Max() {
		return &Refusal{Test: Validity, Reason: fmt.Sprintf("the %d largest values are all equal", len(s.Values)), Advice: "a constant has no tail: use a clock of a finer resolution"}
	}
	return nil
}

// candidates are the possible thresholds, ascending.
func (s Series) candidates() ([]candidate, error) {
	sorted := stats.Sorted(s.Values)
	var candidates []candidate
	limit := min(int(mostShare*float64(s.N)), mostExceedances, len(sorted)-1)
	clustered := 0
	for k := limit; k >= MinExceedances; k = int(float64(k) / math.Sqrt2) {
		c := candidate{threshold: max(s.Floor, sorted[len(sorted)-1-k])}
		c.samples = s.above(c.threshold)
		c.index = ExtremalIndex(c.samples.At)
		c.clusters = clusters(c.samples, c.index)
		if clustered = max(clustered, len(c.clusters.At)); len(c.clusters.At) < MinExceedances {
			if len(candidates) == 0 { // a drift makes few and long clusters, and is the reason to name
				if err := c.drift(); err != nil {
					return nil, err
				}
			}
			break
		}
		candidates = append(candidates, c)
	}
	if len(candidates) > 0 {
		return candidates, nil
	}
	samples := int(MinExceedances / mostShare)
	reason := fmt.Sprintf("%d samples have at most %d above a threshold in the tail", s.N, max(0, limit))
	if clustered > 0 {
		samples = max(samples, s.N*(MinExceedances+clustered-1)/clustered)
		reason += fmt.Sprintf(", in %d independent clusters", clustered)
	}
	return nil, &Refusal{
		Test: Exceedances, Samples: samples,
		Reason: fmt.Sprintf("%s; %d are needed", reason, MinExceedances), Advice: "take more samples",
	}
}

// model fits the tail above the candidate, or returns the reason why it is not stable.
func (c *candidate) model(s Series) (*Model, error) {
	m := &Model{
		N: s.N, Max: s.Max(), Threshold: c.threshold,
		Exceedances: len(c.samples.At), Clusters: len(c.clusters.At), ExtremalIndex: c.index,
	}
	for _, v := range c.clusters.Values {
		m.excesses = append(m.excesses, v-c.threshold)
	}
	sorted := stats.Sorted(m.excesses)
	n := len(sorted)
	if distinct := len(slices.Compact(slices.Clone(sorted))); distinct < n/2 {
		return nil, &Refusal{
			Test: Resolution, Reason: fmt.Sprintf("%d excesses have only %d different values", n, distinct),
			Advice: "a tail of steps has no smooth extrapolation: use a clock of a finer resolution",
		}
	}
	full := MaxLikelihood(m.excesses, minShape)
	a2, limit := AndersonDarling(m.excesses, full), misfit(full.Shape)
	higher := sorted[n-1-n/2]
	var upper []float64
	for _, y := range sorted[n-n/2:] {
		if y > higher {
			upper = append(upper, y-higher)
		}
	}
	// The variance of the shape is (1 + shape)²/n (Smith 1985). The difference of an efficient estimate from the estimate of a part of the data
	// has the difference of their variances.
	change := math.Inf(1)
	if len(upper) > 1 {
		half := MaxLikelihood(upper, minShape).Shape
		spread := 1 + max(cautiousShape, full.Shape)
		change = math.Abs(half-full.Shape) / spread / math.Sqrt(1/float64(len(upper))-1/float64(n))
	}
	bound := distuv.UnitNormal.Quantile(1 - level/2)
	if a2 > limit || change > bound {
		return nil, &Refusal{
			Test: Stability, Samples: 2 * s.N,
			Reason: fmt.Sprintf("above the highest threshold with %d clusters, the Anderson–Darling distance from the fitted tail is %.3g (limit %.3g), and the shape changes by %.3g standard errors for the upper half (limit %.3g)",
				n, a2, limit, change, bound),
			Advice: "the values mix several causes: separate them, or take more samples for a higher threshold",
		}
	}
	m.GPD = MaxLikelihood(m.excesses, cautiousShape)
	m.Variation = VariationOf(m.excesses)
	m.ShapeCI = ShapeInterval(m.excesses, m.GPD)
	return m, nil
}

// stationary refuses clusters that drift or depend on earlier ones.
func (c *candidate) stationary() error {
	if err := c.drift(); err != nil {
		return err
	}
	return c.dependence()
}

// drift refuses clusters whose rate or size changes.
func (c *candidate) drift() error {
	places := c.clusters.At
	if d, p := EvenRate(places, c.clusters.N); p < level {
		return &Refusal{
			Test: Drift, Reason: fmt.Sprintf("the rate of the %d clusters changes over the samples (Kolmogorov–Smirnov distance %.3g, p = %.2g)", len(places), d, p),
			Advice: "find what changed on the machine during the samples, such as temperature, frequency or load, and measure again",
		}
	}
	if rho, p := Trend(c.clusters.Values); p < level {
		return &Refusal{
			Test: Drift, Reason: fmt.Sprintf("the size of the %d clusters has a trend (Spearman's correlation %.2g, p = %.2g)", len(places), rho, p),
			Advice: "find what changed on the machine during the samples, such as temperature, frequency or load, and measure again",
		}
	}
	return nil
}

// dependence refuses clusters that depend on earlier ones.
func (c *candidate) dependence() error {
	places := c.clusters.At
	gaps := make([]float64, 0, len(places))
	for i := 1; i < len(places); i++ {
		gaps = append(gaps, float64(places[i]-places[i-1]))
	}
	for _, part := range []struct {
		name   string
		values []float64
	}{{"sizes of the", c.clusters.Values}, {"gaps between the", gaps}} {
		if q, p := LjungBox(part.values); p < level {
			return &Refusal{
				Test: Independence, Reason: fmt.Sprintf("the %s %d clusters depend on earlier ones (Ljung–Box %.3g on ranks over %d lags, p = %.2g)", part.name, len(places), q, lags, p),
				Advice: "remove the load that comes in phases, or measure its phases separately",
			}
		}
	}
	return nil
}

// finiteVariance refuses a tail whose shape may be 0.5 or more. The coefficient of variation then has no meaning, and an extrapolation by two decades has no
// useful upper end.
func (m *Model) finiteVariance() error {
	const heaviest = 0.5
	if m.ShapeCI.Hi < heaviest {
		return nil
	}
	r := &Refusal{
		Test: Heaviness, Reason: fmt.Sprintf("the shape is %.2g (95 %% interval %.2g to %.2g), and from %.1f on the variance is infinite; the coefficient of variation is %.3g",
			m.GPD.Shape, m.ShapeCI.Lo, m.ShapeCI.Hi, heaviest, m.Variation.CV),
		Advice: "find the cause of the slowest samples and remove or bound it",
	}
	if room := heaviest - m.GPD.Shape; room > 0 {
		needs := math.Pow(distuv.UnitNormal.Quantile(0.975)*(1+m.GPD.Shape)/room, 2)
		if times := needs / float64(m.Clusters); times > 1 && times < 1000 {
			r.Samples = int(math.Ceil(times * float64(m.N)))
			r.Advice += ", or take more samples"
		}
	}
	return r
}

// Bound is the value that one sample exceeds with probability p: threshold + scale/shape·((share/p)^shape − 1), where share is the share of samples above the
// threshold (Coles, equation 4.12, for single samples: the share counts samples and not clusters, which is the cautious choice). The error is a
// [*Refusal] if p is out of range, or if the likelihood does not bound the value.
func (m *Model) Bound(p float64) (Bound, error) {
	share := float64(m.Exceedances) / float64(m.N)
	if !(p > 0 && p < share) {
		return Bound{}, &Refusal{
			Test: Range, Reason: fmt.Sprintf("the probability %.3g is not below the share of samples above the threshold, %.3g", p, share),
			Advice: "read such a value from the samples themselves",
		}
	}
	if minimum := m.least(); p < minimum*(1-1e-9) {
		return Bound{}, &Refusal{
			Test: Range, Samples: int(math.Ceil(math.Pow(10, -Decades) / p * (1 - 1e-9))),
			Reason: fmt.Sprintf("the probability %.3g is more than %d decades beyond 1/%d", p, Decades, m.N), Advice: "take more samples",
		}
	}
	q := p / share
	ci, ok := QuantileInterval(m.excesses, m.GPD, q)
	if !ok {
		return Bound{}, &Refusal{
			Test: Heaviness, Samples: 2 * m.N,
			Reason: fmt.Sprintf("the likelihood does not bound the value that is exceeded with probability %.3g", p), Advice: "take more samples",
		}
	}
	return Bound{
		P: p, Value: m.Threshold + m.GPD.Quantile(q),
		CI: stats.Interval{Lo: m.Threshold + ci.Lo, Hi: m.Threshold + ci.Hi},
	}, nil
}

// least is the smallest probability of a bound.
func (m *Model) least() float64 { return math.Pow(10, -Decades) / float64(m.N) }

// Beyond lists the powers of ten below 1/N that have a bound, in descending order.
func (m *Model) Beyond() []float64 {
	var list []float64
	first := int(math.Floor(-math.Log10(float64(m.N)) * (1 + 1e-12)))
	for e := first; math.Pow10(e) >= m.least()*(1-1e-9); e-- {
		if math.Pow10(e) < 1/float64(m.N)*(1-1e-9) {
			list = append(list, math.Pow10(e))
		}
	}
	return list
}
