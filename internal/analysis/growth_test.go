package analysis

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// The memory of ten containers is the last value of a growth, and not the memory of five.
func TestGrowthCountsByItsLastValue(t *testing.T) {
	trial := &result.Trial{}
	for n := range 10 {
		trial.Samples = append(trial.Samples, result.Sample{Metric: "Memory", Value: float64(n + 1)})
	}
	for _, tt := range []struct {
		growth bool
		want   float64
	}{{true, 10}, {false, 5.5}} {
		got := pointsOf([]*result.Trial{trial}, []result.Metric{{Name: "Memory", Series: true, Growth: tt.growth}})["Memory"]
		if len(got) != 1 || got[0].Value != tt.want {
			t.Errorf("with growth %v: %+v, want one value of %v", tt.growth, got, tt.want)
		}
	}
}
