package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// readings is a gauge of energy that counts its readings.
type readings int

func (*readings) Source() string { return "a gauge" }

func (r *readings) Joules() (float64, error) {
	*r++
	return float64(*r), nil
}

// During long work the runner reads the gauge, whose counter could wrap around. Other benchmarks leave it alone.
func TestGaugeIsReadDuringLongWork(t *testing.T) {
	for _, measures := range []bool{true, false} {
		l := newHarness(t, "fake/a")
		var gauge readings
		l.config.Energy = &gauge
		advance := l.clock.Advance
		l.work("test.one.x", func(context.Context, bench.Trial) error {
			advance(10 * time.Minute)
			return nil
		})
		l.config.Work[0].Benchmark.Needs = func(bench.Params) bench.Needs { return bench.Needs{Energy: measures} }
		l.ok()
		if trial := l.only(); trial.Status != result.OK || (gauge >= 10) != measures || (gauge > 0) != measures {
			t.Errorf("%s after %d readings of the gauge; the benchmark measures energy: %v", trial.Status, gauge, measures)
		}
	}
}
