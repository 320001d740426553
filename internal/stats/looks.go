package stats

// RunLooks are the error probabilities of the looks at growing data: RunLooks[i] is the two-sided level of look i.
type RunLooks []float64

// NewRunLooks returns the levels for looks after first, first+1, …, last observations, whose error probabilities
// together are alpha. An interval of level RunLooks[i] at each look i covers the true value at all looks at once with a probability of
// 1 − alpha (repeated confidence intervals: C. Jennison & B. W. Turnbull, J. R. Stat. Soc. B 51 (1989) 305–361). So a run
// may stop at any look, for any reason.
//
// The levels spend alpha in the manner of O'Brien and Fleming: until the share t of the observations the probability of an error
// to one side is
//
//	2 − 2 Φ(z / √t),  z = Φ⁻¹(1 − alpha/4)
//
// (K. K. G. Lan & D. L. DeMets, Biometrika 70 (1983) 659–663, with alpha/2 for each side). Early looks need overwhelming evidence, and the last look
// has almost the level of a single one. The critical values are exact for normal observations of known variance: P. Armitage, C. K.
// McPherson & B. C. Rowe, J. R. Stat. Soc. A 132 (1969) 235–244, by numerical integration. [Pooled.Interval] uses each
// level with Student's t, the significance-level approach for an unknown variance (C. Jennison & B. W. Turnbull, "Group Sequential
// Methods", 2000, section 3.8). This approach errs in up to 1.2 times alpha, because a standard deviation that is small by chance
// grows only with further observations. So several looks have the levels for alpha/1.2 (TestLooksErrorRate).
func NewRunLooks(first, last int, alpha float64) RunLooks {
	const excess = 1.2
	if last > first {
		alpha /= excess
	}
	var shares []float64
	for n := first; n <= last; n++ {
		shares = append(shares, float64(n)/float64(last))
	}
	errors := spending(shares, alpha/2, true) // to one side
	for i := range errors {
		errors[i] *= 2
	}
	return lookLevels(shares, errors)
}
