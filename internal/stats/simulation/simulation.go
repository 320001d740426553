// Package simulation gives the simulations of tests their size, and bounds for the shares that they count.
//
// A statistic promises a share, such as at most 5 % false alarms. A test repeats an experiment with a fixed seed and counts. A count proves nothing
// unless chance alone hardly gives it: [AtMost] and [AtLeast] take the bound from the binomial distribution of the promised share, for any
// number of trials. So a brief simulation has a wide bound, a full one has a narrow bound, and the promise is stated once.
//
// There are three sizes. The full size is for a release and for the figures of the pages. The brief size is for each change: it fails for an
// estimator that is wrong, and not for one that is a little worse. In short mode there are no simulations.
package simulation

import (
	"fmt"
	"os"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Variable is the environment variable that selects the full size, with any value.
const Variable = "TOUCHSTONE_FULL"

// Chance is the greatest probability that a bound fails although the promise holds.
const Chance = 1e-4

// Full reports whether simulations have their full size.
func Full() bool { return os.Getenv(Variable) != "" }

// Trials returns the number of trials of a test, and lets the test run beside others. In short mode it skips the test.
func Trials(t *testing.T, brief, full int) int {
	t.Helper()
	if testing.Short() {
		t.Skip("short mode has no simulations")
	}
	t.Parallel()
	return size(brief, full)
}

func size(brief, full int) int {
	if Full() {
		return full
	}
	return brief
}

// AtMost fails if count of the trials is too many for a promised share of at most p.
func AtMost(t testing.TB, p float64, count, trials int, format string, args ...any) {
	t.Helper()
	if bound := most(p, trials); trials <= 0 || count > bound {
		t.Errorf("%s: %s; with a share of at most %.4g %% chance gives at most %d", fmt.Sprintf(format, args...), shareText(count, trials), 100*p, bound)
	}
}

// AtLeast fails if count of the trials is too few for a promised share of at least p.
func AtLeast(t testing.TB, p float64, count, trials int, format string, args ...any) {
	t.Helper()
	if bound := trials - most(1-p, trials); trials <= 0 || count < bound {
		t.Errorf("%s: %s; with a share of at least %.4g %% chance gives at least %d", fmt.Sprintf(format, args...), shareText(count, trials), 100*p, bound)
	}
}

func shareText(count, trials int) string {
	return fmt.Sprintf("%d of %d (%.1f %%)", count, trials, 100*float64(count)/float64(trials))
}

// most is the least count that trials with the probability p exceed with a probability of at most Chance.
func most(p float64, trials int) int {
	if p >= 1 {
		return trials
	}
	law := distuv.Binomial{N: float64(trials), P: max(0, p)}
	for count := range trials {
		if p <= 0 || law.Survival(float64(count)) <= Chance {
			return count
		}
	}
	return max(0, trials)
}
