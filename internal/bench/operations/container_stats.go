package operations

import (
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func stats() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.stats",
		Summary: "query the engine for the resource usage of a running container",
		Source:  "peers (the kubelet, docker stats)",
		Metrics: []result.Metric{bench.Seconds("Stats", "from the call to its return")},
	}, engine.CanStats, func(ctx context.Context, t bench.Trial, c engine.Meter, _ int) error {
		return timed(ctx, t, "Stats", func(ctx context.Context) error {
			usage, err := c.Stats(ctx)
			if err == nil && usage.Memory <= 0 {
				err = fmt.Errorf("the engine reports that a running container uses %d bytes of memory", usage.Memory)
			}
			return err
		})
	})
}
