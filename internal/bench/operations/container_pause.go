package operations

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func pause() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.pause",
		Summary: "freeze and thaw a running container",
		Source:  "peers (bucketbench)",
		Metrics: []result.Metric{
			phrased("pauses a container in", bench.Seconds("Pause", "from the call to its answer; with a bare runtime a check of the freezer follows")), bench.Seconds("Resume", "from paused to running"),
		},
	}, engine.CanPause, func(ctx context.Context, t bench.Trial, c engine.Pauser, _ int) error {
		if err := timed(ctx, t, "Pause", c.Pause); err != nil {
			return err
		}
		return timed(ctx, t, "Resume", c.Resume)
	})
}
