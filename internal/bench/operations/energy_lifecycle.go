package operations

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// mostLives ends the loop on a target whose calls take no time, such as a fake one.
const mostLives = 10_000

func energyLifecycle() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.energy.lifecycle",
		Summary: "the energy to create, start, kill and delete a container, one after the other for a time",
		Source:  "peers",
		Metrics: bench.EnergyMetrics("one container from create to delete"),
		Params:  []bench.Param{bench.IdleParam(2*time.Second, 20*time.Second)},
		Needs: func(bench.Params) bench.Needs {
			return bench.Needs{Capabilities: []engine.Capability{engine.OnMachine, engine.DirectCalls}, Energy: true}
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			// The work takes as long as the measurement of the idle machine, so both have the same precision.
			idle := t.Duration("idle")
			return bench.RecordEnergy(ctx, t, idle, func(ctx context.Context) (containers int, err error) {
				start, err := t.Sleep(ctx, 0)
				for moment := start; err == nil && moment-start < idle && containers < mostLives; containers++ {
					if err = live(ctx, t); err == nil {
						moment, err = t.Sleep(ctx, 0)
					}
				}
				return containers, err
			})
		},
	}
}

// live runs one container from create to delete.
func live(ctx context.Context, t bench.Trial) error {
	c, err := bench.Launch(ctx, t, t.Spec(probe.Ready()...))
	if err != nil {
		return err
	}
	if _, err := c.Ready(ctx); err != nil {
		return err
	}
	_, _, err = c.Destroy(ctx, t)
	return err
}
