package operations

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func exec() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.exec",
		Summary: "run a further process in a running container until it exits",
		Source:  "peers (bucketbench, critest)",
		Metrics: []result.Metric{bench.Headed(result.ColumnExec, phrased("runs a further process in a container in", bench.Seconds("Exec", "from the call to the exit of a process that does nothing")))},
	}, engine.CanExec, func(ctx context.Context, t bench.Trial, c engine.Execer, _ int) error {
		// The code is random, so that only the process itself can bring it back.
		want, got := engine.Exit{Code: 1 + rand.IntN(mostCode)}, engine.Exit{}
		err := timed(ctx, t, "Exec", func(ctx context.Context) (err error) {
			got, err = c.Exec(ctx, engine.Process{Args: probe.Exit(want.Code)})
			return err
		})
		if err == nil && got != want {
			err = fmt.Errorf("exec returned success without running its process: want the process's %v, got %v", want, got)
		}
		return err
	})
}

// mostCode is the highest exit code of a process of this benchmark. Engines use higher codes for programs that did not run, and for
// signals.
const mostCode = 124
