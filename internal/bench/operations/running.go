package operations

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// repeated calls an operation on one running container as often as the parameter repeats says, and records
// each time. The operation gets the number of the call.
func repeated(ctx context.Context, t bench.Trial, metric string, call func(ctx context.Context, c engine.Container, n int) error) error {
	repeats, err := strconv.Atoi(t.Param("repeats"))
	if err != nil {
		return err
	}
	c, err := bench.Start(ctx, t)
	if err != nil {
		return err
	}
	for n := range repeats {
		span, err := t.Time(ctx, strings.ToLower(metric), func(ctx context.Context) error { return call(ctx, c, n) })
		if err != nil {
			return err
		}
		t.Record(metric, span.Seconds())
	}
	return nil
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
			return repeated(ctx, t, "Update", func(ctx context.Context, c engine.Container, n int) error {
				// Another limit each time, so that there is something to change.
				return c.(engine.Updater).Update(ctx, engine.Resources{CPU: 0.5 + float64(n%2)/2})
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
			return repeated(ctx, t, "Stats", func(ctx context.Context, c engine.Container, _ int) error {
				used, err := c.(engine.Meter).Stats(ctx)
				if err == nil && used.Memory <= 0 {
					err = fmt.Errorf("the engine says that a running container uses %d bytes of memory", used.Memory)
				}
				return err
			})
		},
	}
}
