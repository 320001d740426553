package scalability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

const prefix = "scalability.runtime."

// parallel is the mode in which all containers start at once.
const parallel = "parallel"

func runtime(n int) bench.Benchmark {
	total := func(name, phrase, help string) result.Metric {
		m := bench.Seconds(name, help)
		m.Phrase = fmt.Sprintf("%s %d containers in", phrase, n)
		return m
	}
	series := func(name, help string) result.Metric {
		m := bench.Seconds(name, help)
		m.Series, m.Trend = true, "running container"
		return m
	}
	return bench.Benchmark{
		Name:    prefix + strconv.Itoa(n),
		Summary: fmt.Sprintf("start %d long-running containers, then destroy them", n),
		Source:  "espe figure 6; wang figure 17",
		Metrics: append([]result.Metric{
			total("TotalTime", "starts", "from before the first create to the end of the last start (espe: TotalTime)"),
			total("DestroyTime", "destroys", "from before the first kill to the end of the last delete"),
			series("StartLatency", "create and start of a container, by the number of containers that then run"),
			series("FirstInstruction", "from just before create to the first byte of a container, by the number of containers that then run"),
			series("RemovalLatency", "the sum of kill, wait and delete of a container, by the number of containers that ran before"),
		}, bench.CostMetrics()...),
		Place:       "number of running containers, this one included",
		PaperLimits: engine.Resources{CPU: 2, Memory: 500 << 20},
		Params: []bench.Param{{
			Name: "mode", Help: "one after the other, or all at once", Quick: "sequential", Paper: "sequential",
			Check: bench.OneOf("sequential", parallel),
		}},
		Needs: func(bench.Params) bench.Needs { return needs(n) },
		Run:   func(ctx context.Context, t bench.Trial) error { return run(ctx, t, n) },
	}
}

// member is one container of the crowd.
type member struct {
	*bench.Running
	destroy   time.Duration // without the time between its phases
	destroyed bench.Span
}

func run(ctx context.Context, t bench.Trial, n int) error {
	apply := inTurn
	if t.Param("mode") == parallel {
		apply = atOnce
	}
	crowd := make([]member, n)
	// The next container starts as soon as the engine has started this one, before its first byte.
	err := apply(crowd, func(m *member) (err error) {
		m.Running, err = bench.Launch(ctx, t, t.Spec(probe.Ready()...))
		return err
	})
	if err != nil {
		return err
	}
	firsts := make([]time.Duration, n)
	for i := range crowd {
		if firsts[i], err = crowd[i].Ready(ctx); err != nil {
			return fmt.Errorf("container %d of %d: %w", i+1, n, err)
		}
	}
	err = apply(crowd, func(m *member) (err error) {
		m.destroy, m.destroyed, err = m.Destroy(ctx, t)
		return err
	})
	if err != nil {
		return err
	}
	var starts, first, removals []float64
	span := bench.Span{Start: crowd[0].CreateSpan.Start, End: crowd[0].StartSpan.End}
	destroyed := crowd[0].destroyed
	for i, m := range crowd {
		create := m.CreateSpan.Start
		span = bench.Span{Start: min(span.Start, create), End: max(span.End, m.StartSpan.End)}
		destroyed = bench.Span{Start: min(destroyed.Start, m.destroyed.Start), End: max(destroyed.End, m.destroyed.End)}
		starts = append(starts, (m.StartSpan.End - create).Seconds())
		first = append(first, (firsts[i] - create).Seconds())
		removals = append(removals, m.destroy.Seconds())
	}
	slices.Reverse(removals) // the last removal is the removal of the only running container
	recordSeries(t, "StartLatency", starts)
	recordSeries(t, "FirstInstruction", first)
	recordSeries(t, "RemovalLatency", removals)
	t.Record("TotalTime", span.Seconds())
	t.Record("DestroyTime", destroyed.Seconds())
	return bench.RecordCost(t)
}

// recordSeries records the values by the number of running containers. In the parallel mode no value belongs to a number, and the
// median is recorded.
func recordSeries(t bench.Trial, metric string, values []float64) {
	if t.Param("mode") == parallel {
		values = []float64{stats.Median(values)}
	}
	for _, v := range values {
		t.Record(metric, v)
	}
}

// inTurn calls do for one member after the other and stops at the first error.
func inTurn(crowd []member, do func(*member) error) error {
	for i := range crowd {
		if err := do(&crowd[i]); err != nil {
			return fmt.Errorf("container %d of %d: %w", i+1, len(crowd), err)
		}
	}
	return nil
}

// atOnce calls do for all members in parallel.
func atOnce(crowd []member, do func(*member) error) error {
	errs := make([]error, len(crowd))
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			if err := do(&crowd[i]); err != nil {
				errs[i] = fmt.Errorf("container %d of %d: %w", i+1, len(crowd), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
