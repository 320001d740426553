package operations

import (
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

func exec() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.exec",
		Summary: "run a further process in a running container until it exits",
		Source:  "peers (bucketbench, critest)",
		Metrics: []result.Metric{phrased("runs a further process in a container in", bench.Seconds("Exec", "from the call to the exit of a process that does nothing"))},
	}, engine.CanExec, func(ctx context.Context, t bench.Trial, c engine.Execer, _ int) error {
		return timed(ctx, t, "Exec", func(ctx context.Context) error {
			exit, err := c.Exec(ctx, engine.Process{Args: workload.Exit(0)})
			if err == nil && !exit.OK() {
				err = fmt.Errorf("the process ended: %v", exit)
			}
			return err
		})
	})
}
