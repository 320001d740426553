package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// MinDependence is the least number of values that can show whether each depends on the ones before.
const MinDependence = 30

// dependenceLevel is the level of the test for dependence.
const dependenceLevel = 0.01

// dependent tests whether values, in the order of measurement, depend on the ones before: the Q of G. M. Ljung and
// G. E. P. Box, Biometrika 65 (1978) 297–303, on ranks, so that outliers do not hide it, over a fifth of the values but at most ten
// lags. It is false below MinDependence.
func dependent(values []float64) bool {
	return len(values) >= MinDependence && dependentRanks(Midranks(values, 0))
}

// dependentRanks is dependent for the ranks of values.
func dependentRanks(ranks []float64) bool {
	n := len(ranks)
	if n < MinDependence {
		return false
	}
	lags := min(10, n/5)
	var q float64
	for lag := 1; lag <= lags; lag++ {
		r := autocorrelation(ranks, lag)
		q += r * r / float64(n-lag)
	}
	q *= float64(n) * float64(n+2)
	return distuv.ChiSquared{K: float64(lags)}.Survival(q) < dependenceLevel
}

// medianInflation is the factor by which dependence increases the variance of the median of values in the order of
// measurement, if each value depends on the one before alone (AR(1); H. R. Künsch, Annals of Statistics 17 (1989)
// 1217–1241, has the general form). It is the correlation of ranks. The signs of the deviations from the median, which decide its
// variance, are less correlated, so the factor errs on the safe side.
//
// It is 1 below MinDependence, and for a correlation that is not greater than chance alone often gives (1/√n).
func medianInflation(values []float64) float64 {
	if len(values) < MinDependence {
		return 1
	}
	return rankInflation(Midranks(values, 0))
}

// rankInflation is medianInflation for the ranks of values.
func rankInflation(ranks []float64) float64 {
	n := len(ranks)
	if n < MinDependence {
		return 1
	}
	r := rankCorrelation(ranks, 1)
	if r <= 1/math.Sqrt(float64(n)) {
		return 1
	}
	return inflation(r, n)
}

// autocorrelation is the correlation of values with those some places before, with the mean and the variance of all. It is NaN if all are
// equal.
func autocorrelation(values []float64, lag int) float64 {
	mean := stat.Mean(values, nil)
	var sum, squares float64
	for i, v := range values {
		squares += (v - mean) * (v - mean)
		if i >= lag {
			sum += (v - mean) * (values[i-lag] - mean)
		}
	}
	return sum / squares
}
