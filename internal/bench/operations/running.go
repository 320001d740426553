package operations

import (
	"context"
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// repeated does something with one running container as often as the parameter repeats says. It gets the number
// of the time.
func repeated(ctx context.Context, t bench.Trial, do func(c engine.Container, n int) error) error {
	var repeats int
	if err := bench.Numbers(t, map[string]*int{"repeats": &repeats}); err != nil {
		return err
	}
	c, err := bench.Start(ctx, t)
	if err != nil {
		return err
	}
	for n := range repeats {
		if err := do(c, n); err != nil {
			return err
		}
	}
	return nil
}

// timed makes a call as a phase that is named after the metric, and records its time.
func timed(ctx context.Context, t bench.Trial, metric string, call func(context.Context) error) error {
	span, err := t.Time(ctx, strings.ToLower(metric), call)
	if err == nil {
		t.Record(metric, span.Seconds())
	}
	return err
}

func update() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.container.update",
		Summary: "change the CPU limit of a running container",
		Source:  "peers (docker update, the kubelet's resize of a pod)",
		Metrics: []result.Metric{series(seconds("Update", "from the call to its answer; whether the limit then holds is not part of it"))},
		Params:  []bench.Param{repeats},
		Needs:   []engine.Capability{engine.CanUpdate},
		Run: func(ctx context.Context, t bench.Trial) error {
			return repeated(ctx, t, func(c engine.Container, n int) error {
				return timed(ctx, t, "Update", func(ctx context.Context) error {
					// Another limit each time, so that there is something to change.
					return c.(engine.Updater).Update(ctx, engine.Resources{CPU: 0.5 + float64(n%2)/2})
				})
			})
		},
	}
}

func stats() bench.Benchmark {
	return bench.Benchmark{
		Name:    "operations.container.stats",
		Summary: "ask the engine what a running container uses",
		Source:  "peers (the kubelet, docker stats)",
		Metrics: []result.Metric{series(seconds("Stats", "from the call to its answer"))},
		Params:  []bench.Param{repeats},
		Needs:   []engine.Capability{engine.CanStats},
		Run: func(ctx context.Context, t bench.Trial) error {
			return repeated(ctx, t, func(c engine.Container, _ int) error {
				return timed(ctx, t, "Stats", func(ctx context.Context) error {
					used, err := c.(engine.Meter).Stats(ctx)
					if err == nil && used.Memory <= 0 {
						err = fmt.Errorf("the engine says that a running container uses %d bytes of memory", used.Memory)
					}
					return err
				})
			})
		},
	}
}
