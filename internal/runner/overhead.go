package runner

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

// Repetitions of the measurement of Touchstone's own overhead.
const (
	emptyRegions = 1000
	bareExecs    = 21
	pings        = 51
)

// MeasureOverhead measures Touchstone's own part in a measurement: an empty timed region, and the start of a bare process
// that exits at once.
func MeasureOverhead(ctx context.Context, clock meter.Clock, launcher *process.Launcher, probe string) (result.Overhead, error) {
	t := &trial{r: &run{Config: Config{Clock: clock, CallLimit: time.Minute}}, began: clock.Now()}
	call := func(context.Context) error { return nil }
	var empty, execs []time.Duration
	for range emptyRegions {
		span, err := t.Time(ctx, "empty", call)
		if err != nil {
			return result.Overhead{}, err
		}
		empty = append(empty, span.End-span.Start)
	}
	for range bareExecs {
		span, err := t.Time(ctx, "exec", func(ctx context.Context) error {
			return launcher.Run(ctx, exec.CommandContext(ctx, probe, "exit"))
		})
		if err != nil {
			return result.Overhead{}, fmt.Errorf("measure Touchstone's own overhead: %w", err)
		}
		execs = append(execs, span.End-span.Start)
	}
	return result.Overhead{EmptyRegion: middle(empty), Exec: middle(execs)}, nil
}

// MeasureRequests measures the round trip of a request that does nothing, by the name of the engine. Engines without a daemon have no
// entry, nor has a daemon that does not answer: its targets fail later, each with the reason.
func MeasureRequests(ctx context.Context, clock meter.Clock, targets []Target) map[string]time.Duration {
	t := &trial{r: &run{Config: Config{Clock: clock, CallLimit: time.Minute}}, began: clock.Now()}
	requests := map[string]time.Duration{}
	for _, target := range targets {
		p, ok := target.Engine.(engine.Pinger)
		if !ok {
			continue
		}
		name := target.Engine.Info().Target.Engine
		if _, ok := requests[name]; ok {
			continue
		}
		if took, err := t.ping(ctx, p); err == nil {
			requests[name] = took
		}
	}
	return requests
}

// ping is the median time of a request.
func (t *trial) ping(ctx context.Context, p engine.Pinger) (time.Duration, error) {
	var took []time.Duration
	for range pings {
		span, err := t.Time(ctx, "ping", p.Ping)
		if err != nil {
			return 0, err
		}
		took = append(took, span.End-span.Start)
	}
	return middle(took), nil
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
