package stats

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// dependentSeries is a series around 100 whose values depend on the ones before.
func dependentSeries(seed uint64, n int, correlation float64) []float64 {
	values := autoregressive(random(seed), n, correlation)
	for i := range values {
		values[i] += 100
	}
	return values
}

// With a correlation of 0.6 an interval that assumes independence covers in about three quarters of the cases.
func TestDependentCoverage(t *testing.T) {
	trials := simulation.Trials(t, 200, 1000)
	for _, n := range []int{30, 60, 120} {
		var coverCount, naive, warnCount int
		for trial := range uint64(trials) {
			values := dependentSeries(trial, n, 0.6)
			sorted := slices.Sorted(slices.Values(values))
			coverCount += count(covers(*medianInterval(sorted, medianInflation(values)), 100))
			naive += count(covers(*medianInterval(sorted, 1), 100))
			warnCount += count(dependent(values))
		}
		t.Logf("autocorrelation of 0.6, n = %d: the interval of the median covers it in %.1f %%, without the correction in %.1f %%; warned of in %.0f %%", n, 100*share(coverCount, trials), 100*share(naive, trials), 100*share(warnCount, trials))
		simulation.AtLeast(t, 0.9, coverCount, trials, "n = %d: covers", n)
		simulation.AtMost(t, 0.85, naive, trials, "n = %d: covers without the correction", n)
	}
}

func TestDependenceIsFoundAndNotInvented(t *testing.T) {
	var found, invented int
	for trial := range uint64(500) {
		found += count(dependent(dependentSeries(trial, 50, 0.6)))
		invented += count(dependent(dependentSeries(trial, 50, 0)))
	}
	if found < 320 || invented > 12 {
		t.Errorf("dependence is found in %d of 500 series with it, and in %d without it", found, invented)
	}
	if head := dependentSeries(1, MinDependence-1, 0.95); dependent(head) || medianInflation(head) != 1 {
		t.Error("a short series is judged")
	}
}

func TestAutocorrelation(t *testing.T) {
	near(t, "lag 1 of 1 2 3 4", autocorrelation([]float64{1, 2, 3, 4}, 1), 0.25, 1e-15) // (0.75 − 0.25 + 0.75) / 5
	if r := autocorrelation([]float64{2, 2, 2}, 1); r == r {
		t.Errorf("equal values have the correlation %g", r)
	}
}
