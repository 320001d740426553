package operations

import (
	"context"
	"fmt"
	"math"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func update() bench.Benchmark {
	return repeatedOn(bench.Benchmark{
		Name:      "operations.container.update",
		Summary:   "change the CPU limit of a running container",
		Source:    "peers (docker update, the kubelet's resize of a pod)",
		Metrics:   []result.Metric{bench.Seconds("Update", "from the call to its return; then the limit is read back from the host")},
		OwnLimits: []bench.Limit{bench.CPULimit},
	}, engine.CanUpdate, func(ctx context.Context, t bench.Trial) (engine.Container, func(context.Context, engine.Updater, int) error, error) {
		running, err := bench.Start(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		return running.Container, func(ctx context.Context, c engine.Updater, n int) error {
			// The limit differs each time, so that each call changes it.
			want := 0.5 + float64(n%2)/2
			err := timed(ctx, t, "Update", func(ctx context.Context) error { return c.Update(ctx, engine.Resources{CPU: want}) })
			if err == nil {
				err = readBack(ctx, t, c, want)
			}
			return err
		}, nil
	})
}

// tolerance is the greatest relative difference between a CPU limit and its value on the host. systemd rounds a quota up to 10 ms.
const tolerance = 0.05

// readBack checks that a CPU limit holds on the host. It records why if the host cannot see the limit.
func readBack(ctx context.Context, t bench.Trial, c any, want float64) error {
	const condition = "limit read back"
	limiter, ok := c.(engine.Limited)
	if !ok {
		t.Condition(condition, "no: the engine cannot read it")
		return nil
	}
	got, err := limiter.Limits(ctx)
	if engine.Unsupported(err) {
		t.Condition(condition, "no: "+err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("read back the limit of the update: %w", err)
	}
	if math.Abs(got.CPU-want) > tolerance*want {
		found := "none"
		if got.CPU > 0 {
			found = fmt.Sprintf("%.3g CPUs", got.CPU)
		}
		return fmt.Errorf("update returned success without changing the limit: want %.3g CPUs in the container's cgroup, got %s", want, found)
	}
	return nil
}
