package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// powerMargin is the power in the computation of Detectable. It is above Power because the spread of the noise is itself an
// estimate. With it the simulated power is 77–91 % from 6 to 200 blocks (TestPower).
const powerMargin = 0.85

// detectableSamples is the number of resamples for Detectable.
const detectableSamples = 100

// detectable is the smallest relative difference that a paired comparison would have shown at a level with a probability
// of Power. atLook is the level of the test at the look of the comparison. It is for a target with a greater value than the baseline; for a smaller value it is conservative.
//
// It is calibrated on the run itself. A resample has as many log ratios as the run, drawn from the run's own around their
// estimate, with random signs, because without a difference they are symmetric. They are stretched by √(n/(n−2)), as resamples
// of few values vary too little. The signed-rank test rejects equality if one end of its interval is beyond zero. So a shift
// is found in a resample if it exceeds the distance from that end to zero, and the result is the shift that is found in
// powerMargin of the resamples.
func detectable(c Comparison, level, atLook float64) float64 {
	if c.blind(level) {
		return math.Inf(1)
	}
	// The joint test gives the typical value between its share of the level and the whole.
	critical := max(0, signedRankCritical(c.N, atLook*(1+partWeights[0])/2))
	centre := math.Log(c.Ratio)
	stretch := math.Sqrt(float64(c.N) / float64(c.N-2))
	random := rand.New(generator(c.Seed, 3))
	needs := make([]float64, detectableSamples)
	resample, walsh := make([]float64, c.N), &shifts{}
	for i := range needs {
		for j := range resample {
			resample[j] = stretch * (c.LogRatios[random.IntN(c.N)] - centre)
			if random.Uint64()&1 == 0 {
				resample[j] = -resample[j]
			}
		}
		slices.Sort(resample)
		walsh.listLowestWalsh(resample, critical)
		needs[i] = -walsh.at(critical)
	}
	return math.Expm1(max(0, selectRank(needs, int(powerMargin*detectableSamples))))
}

// detectableFormula is the same from the standard error alone, for comparisons without pairs and for many pairs:
//
//	exp((t at 1−atLook/2 + t at powerMargin) · LogSE) − 1
//
// with Student's t of N−1 degrees of freedom (the usual formula of a sample size, such as
// J. Cohen, "Statistical Power Analysis", 1988, solved for the difference).
func detectableFormula(c Comparison, level, atLook float64) float64 {
	if c.blind(level) {
		return math.Inf(1)
	}
	t := student(c.N)
	return math.Expm1((t.Quantile(1-atLook/2) + t.Quantile(powerMargin)) * c.LogSE)
}
