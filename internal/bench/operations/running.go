package operations

import (
	"context"
	"fmt"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// repeated completes a benchmark that repeats operations on one running container. The container implements T, which the
// capability promises. Operate receives the number of the repetition.
func repeated[T any](b bench.Benchmark, capability engine.Capability, operate func(ctx context.Context, t bench.Trial, c T, n int) error) bench.Benchmark {
	for i := range b.Metrics {
		b.Metrics[i].Series = true
	}
	b.Params = []bench.Param{{
		Name: "repeats", Help: "operations in a row in the same container", Quick: "5", Paper: "20", Check: bench.IntRange(1, 1000),
	}}
	b.Needs = bench.Always(capability)
	b.Run = func(ctx context.Context, t bench.Trial) error {
		running, err := bench.Start(ctx, t)
		if err != nil {
			return err
		}
		c, err := bench.Optional[T](running.Container, capability)
		for n := 0; err == nil && n < t.Int("repeats"); n++ {
			err = operate(ctx, t, c, n)
		}
		return err
	}
	return b
}

// timed makes a call as a phase named after the metric, and records its time.
func timed(ctx context.Context, t bench.Trial, metric string, call func(context.Context) error) error {
	span, err := t.Time(ctx, strings.ToLower(metric), call)
	if err == nil {
		t.Record(metric, span.Seconds())
	}
	return err
}

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

func update() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.update",
		Summary: "change the CPU limit of a running container",
		Source:  "peers (docker update, the kubelet's resize of a pod)",
		Metrics: []result.Metric{bench.Seconds("Update", "from the call to its return; it does not check that the limit then holds")},
	}, engine.CanUpdate, func(ctx context.Context, t bench.Trial, c engine.Updater, n int) error {
		return timed(ctx, t, "Update", func(ctx context.Context) error {
			// The limit differs each time, so that each call changes it.
			return c.Update(ctx, engine.Resources{CPU: 0.5 + float64(n%2)/2})
		})
	})
}

func stats() bench.Benchmark {
	return repeated(bench.Benchmark{
		Name:    "operations.container.stats",
		Summary: "query the engine for the resource usage of a running container",
		Source:  "peers (the kubelet, docker stats)",
		Metrics: []result.Metric{bench.Seconds("Stats", "from the call to its return")},
	}, engine.CanStats, func(ctx context.Context, t bench.Trial, c engine.Meter, _ int) error {
		return timed(ctx, t, "Stats", func(ctx context.Context) error {
			used, err := c.Stats(ctx)
			if err == nil && used.Memory <= 0 {
				err = fmt.Errorf("the engine reports that a running container uses %d bytes of memory", used.Memory)
			}
			return err
		})
	})
}
