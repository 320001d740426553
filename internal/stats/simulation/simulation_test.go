package simulation

import (
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/combin"
)

// The bounds follow from the definition: the sum of the binomial probabilities above the bound is at most Chance, and the next bound has more.
func TestBoundsAreBinomial(t *testing.T) {
	upperTail := func(bound, trials int, p float64) (sum float64) {
		for count := bound + 1; count <= trials; count++ {
			product := float64(combin.Binomial(trials, count))
			for i := range trials {
				if i < count {
					product *= p
				} else {
					product *= 1 - p
				}
			}
			sum += product
		}
		return sum
	}
	for _, trials := range []int{1, 3, 20, 50} {
		for _, p := range []float64{0.001, 0.05, 0.5, 0.94} {
			bound := most(p, trials)
			if tail := upperTail(bound, trials, p); tail > Chance {
				t.Errorf("%d trials, p = %g: the bound %d fails by chance in %g", trials, p, bound, tail)
			}
			if tail := upperTail(bound-1, trials, p); bound > 0 && tail <= Chance {
				t.Errorf("%d trials, p = %g: %d would do instead of %d", trials, p, bound-1, bound)
			}
		}
	}
}

func TestCertainShares(t *testing.T) {
	for _, c := range []struct {
		p            float64
		trials, want int
	}{{0, 10, 0}, {-1, 10, 0}, {1, 10, 10}, {0.5, 0, 0}} {
		if got := most(c.p, c.trials); got != c.want {
			t.Errorf("of %d trials with p = %g at most %d, want %d", c.trials, c.p, got, c.want)
		}
	}
}

// recorder records the failure of a check.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

// Twice the promised error fails, and a count as promised passes. No trial is no proof.
func TestChecks(t *testing.T) {
	for _, c := range []struct {
		name  string
		check func(r *recorder)
		want  string
	}{
		{"as promised", func(r *recorder) { AtMost(r, 0.05, 50, 1000, "alarms") }, ""},
		{"twice the promised error", func(r *recorder) { AtMost(r, 0.05, 100, 1000, "alarms of %s", "crun") }, "alarms of crun: 100 of 1000 (10.0 %); with a share of at most 5 % "},
		{"covers as promised", func(r *recorder) { AtLeast(r, 0.95, 950, 1000, "covers") }, ""},
		{"misses twice as often", func(r *recorder) { AtLeast(r, 0.95, 900, 1000, "covers") }, "covers: 900 of 1000 (90.0 %); with a share of at least 95 % "},
		{"no trial", func(r *recorder) { AtLeast(r, 0.5, 0, 0, "covers") }, "covers: 0 of 0"},
		{"none of no trials", func(r *recorder) { AtMost(r, 0.5, 0, 0, "alarms") }, "alarms: 0 of 0"},
	} {
		r := &recorder{}
		if c.check(r); (c.want == "") != (r.failure == "") || !strings.HasPrefix(r.failure, c.want) {
			t.Errorf("%s: %q, want %q", c.name, r.failure, c.want)
		}
	}
}

func TestSizes(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 7} {
		t.Setenv(Variable, value)
		if got := size(3, 7); got != want {
			t.Errorf("%s=%q: %d trials, want %d", Variable, value, got, want)
		}
	}
}
