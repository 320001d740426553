package operations

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func pause() bench.Benchmark {
	return repeatedOn(bench.Benchmark{
		Name:    "operations.container.pause",
		Summary: "freeze and thaw a running container",
		Source:  "peers (bucketbench)",
		Metrics: []result.Metric{
			phrased("pauses a container in", bench.Seconds("Pause", "from the call to its answer; with a bare runtime a check of the freezer follows")), bench.Seconds("Resume", "from paused to running"),
		},
	}, engine.CanPause, func(ctx context.Context, t bench.Trial) (engine.Container, func(context.Context, engine.Pauser, int) error, error) {
		var w writer
		c, err := w.start(ctx, t)
		return c, func(ctx context.Context, c engine.Pauser, _ int) error {
			if err := timed(ctx, t, "Pause", c.Pause); err != nil {
				return err
			}
			if err := w.awaitSilence(ctx, t); err != nil {
				return err
			}
			if err := timed(ctx, t, "Resume", c.Resume); err != nil {
				return err
			}
			return w.awaitLine(ctx, t)
		}, err
	})
}

const (
	// interval is the time between two lines of the container's process, and silence the time without a line that shows that it is
	// paused. A busy host can keep a running process silent for as long: then a false pause passes.
	interval = 20 * time.Millisecond
	silence  = 5 * interval
	// patience is the time for a process to become silent after a pause, or write after a resume. Both are late on a busy host,
	// because the output of a container passes through several programs.
	patience = 10 * time.Second
)

// writer counts the lines of a process that writes them all the time. They prove a pause and a resume without the engine's own state.
type writer struct{ lines atomic.Int64 }

// start runs the process in a container, and waits for its first line.
func (w *writer) start(ctx context.Context, t bench.Trial) (engine.Container, error) {
	spec := t.Spec(probe.Tick(interval)...)
	spec.Process.Stdout = bench.Lines(t, func(line string, _ time.Duration) {
		if _, err := probe.ParseTick(line); err == nil {
			w.lines.Add(1)
		}
	})
	c, err := bench.Launch(ctx, t, spec)
	if err != nil {
		return nil, err
	}
	line, _, err := c.FirstLine(ctx)
	if err == nil {
		_, err = probe.ParseTick(line)
	}
	return c.Container, err
}

// awaitSilence returns when the process writes nothing. Its last lines can arrive after the pause.
func (w *writer) awaitSilence(ctx context.Context, t bench.Trial) error {
	start := w.lines.Load()
	for wait := time.Duration(0); wait < patience; wait += silence {
		last := w.lines.Load()
		if _, err := t.Sleep(ctx, silence); err != nil {
			return err
		}
		if w.lines.Load() == last {
			return nil
		}
	}
	return fmt.Errorf("pause returned success without pausing the process: want no output, got %d lines in %v", w.lines.Load()-start, patience)
}

// awaitLine returns when the process has written a line, after it was silent.
func (w *writer) awaitLine(ctx context.Context, t bench.Trial) error {
	start := w.lines.Load()
	for wait := time.Duration(0); wait < patience; wait += interval {
		if _, err := t.Sleep(ctx, interval); err != nil {
			return err
		}
		if w.lines.Load() > start {
			return nil
		}
	}
	return fmt.Errorf("resume returned success without resuming the process: want a line of output each %v, got none in %v", interval, patience)
}
