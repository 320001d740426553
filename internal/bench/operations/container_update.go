package operations

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func update() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:      "operations.container.update",
		Summary:   "change the CPU limit of a running container",
		Source:    "peers (docker update, the kubelet's resize of a pod)",
		Metrics:   []result.Metric{bench.Seconds("Update", "from the call to its return; it does not check that the limit then holds")},
		OwnLimits: []bench.Limit{bench.CPULimit},
	}, engine.CanUpdate, func(ctx context.Context, t bench.Trial, c engine.Updater, n int) error {
		return timed(ctx, t, "Update", func(ctx context.Context) error {
			// The limit differs each time, so that each call changes it.
			return c.Update(ctx, engine.Resources{CPU: 0.5 + float64(n%2)/2})
		})
	})
}
