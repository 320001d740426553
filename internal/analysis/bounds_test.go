package analysis

import (
	"math/rand/v2"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/tail"
)

// A probability without a bound leaves the bounds of greater ones. Without any bound the whole worst case is refused.
func TestBoundsUpToTheFirstRefusal(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	values := make([]float64, 10_000)
	for i := range values {
		values[i] = 0.01 + 0.001*random.ExpFloat64()
	}
	model, err := tail.Fit(tail.Of(values))
	if err != nil {
		t.Fatal(err)
	}
	const tooRare = 1e-9
	for name, c := range map[string]struct {
		probabilities  []float64
		bounds         int
		refused, rarer bool
	}{
		"all have a bound":          {[]float64{1e-5, 1e-6}, 2, false, false},
		"the rarest has none":       {[]float64{1e-5, 1e-6, tooRare}, 2, false, true},
		"the search ends at one":    {[]float64{1e-5, tooRare, 1e-6}, 1, false, true},
		"not even the first has it": {[]float64{tooRare, 1e-5}, 0, true, false},
	} {
		var w Worst
		w.bound(model, c.probabilities)
		if len(w.Bounds) != c.bounds || (w.Refusal != nil) != c.refused || (w.Rarer != nil) != c.rarer || (w.Model == nil) != c.refused {
			t.Errorf("%s: the worst case is %+v", name, w)
		}
	}
}
