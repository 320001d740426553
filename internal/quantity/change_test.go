package quantity_test

import (
	"math"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func TestChange(t *testing.T) {
	for ratio, want := range map[float64]string{
		1: "0.0 %", 1.048: "+4.8 %", 0.952: "−4.8 %", 0.99999: "0.0 %", 2.31: "2.31 ×", 0.4: "0.400 ×", math.NaN(): "–",
	} {
		if got := quantity.Change(ratio); got != want {
			t.Errorf("the change of %v is %q, want %q", ratio, got, want)
		}
	}
	for want, ci := range map[string]*stats.Interval{
		"–": nil, "+1.2 to +8.6 %": {Lo: 1.012, Hi: 1.086}, "−1.2 to 0.0 %": {Lo: 0.988, Hi: 1}, "0.900 to 2.20 ×": {Lo: 0.9, Hi: 2.2},
	} {
		if got := quantity.ChangeInterval(ci); got != want {
			t.Errorf("the interval is %q, want %q", got, want)
		}
	}
}

// A row has one unit: a ratio has the unit of its interval.
func TestChangeHasTheUnitOfItsInterval(t *testing.T) {
	for want, ci := range map[string]*stats.Interval{"+95.0 %": {Lo: 1.93, Hi: 1.98}, "1.95 ×": {Lo: 1.8, Hi: 2.1}} {
		if got := quantity.ChangeBeside(ci, 1.95); got != want {
			t.Errorf("the change is %q, want %q", got, want)
		}
	}
}
