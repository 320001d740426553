// Package scalability is the suite of the behaviour of engines under a growing number of containers.
package scalability

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

const prefix = "scalability.runtime."

// largest bounds the number of containers of one trial: beyond it hosts run out of processes and pipes before a runtime
// reaches its limits.
const largest = 10_000

// Benchmarks lists the sizes of the paper, and the rates.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{runtime(5), runtime(10), runtime(50), rate(1), rate(4), rate(8)}
}

// Lookup returns the benchmark for any size: scalability.runtime.N and scalability.rate.N.
func Lookup(name string) (bench.Benchmark, bool) {
	for _, family := range []struct {
		prefix string
		most   int
		of     func(int) bench.Benchmark
	}{{prefix, largest, runtime}, {ratePrefix, mostWorkers, rate}} {
		text, ok := strings.CutPrefix(name, family.prefix)
		n, err := strconv.Atoi(text)
		if ok && err == nil && n >= 1 && n <= family.most && strconv.Itoa(n) == text {
			return family.of(n), true
		}
	}
	return bench.Benchmark{}, false
}

func runtime(n int) bench.Benchmark {
	whole := func(name, phrase, help string) result.Metric {
		m := bench.Seconds(name, help)
		m.Phrase = fmt.Sprintf("%s %d containers in", phrase, n)
		return m
	}
	each := func(name, help string) result.Metric {
		m := bench.Seconds(name, help)
		m.Series = true
		return m
	}
	return bench.Benchmark{
		Name:    prefix + strconv.Itoa(n),
		Summary: fmt.Sprintf("start %d long-running containers, then destroy them", n),
		Source:  "espe figure 6; wang figure 17",
		Metrics: append([]result.Metric{
			whole("TotalTime", "starts", "from before the first create to the end of the last start (espe: TotalTime)"),
			whole("DestroyTime", "destroys", "from before the first kill to the end of the last delete"),
			each("StartLatency", "create and start of each container, in the order of their number: a function of the number of running containers"),
			each("FirstInstruction", "from just before create to the first byte of each container, in the same order"),
			each("DestroyLatency", "the sum of kill, wait and delete of each container, in the same order"),
		}, bench.CostMetrics()...),
		Place: "number of the container, in order of start",
		Params: []bench.Param{{
			Name: "mode", Help: "one after the other, or all at once", Quick: "sequential", Paper: "sequential",
			Check: bench.OneOf("sequential", "parallel"),
		}},
		Run: func(ctx context.Context, t bench.Trial) error { return run(ctx, t, n) },
	}
}

// member is one container of the crowd.
type member struct {
	*bench.Running
	destroy   time.Duration // without the time between its phases
	destroyed bench.Span
}

func run(ctx context.Context, t bench.Trial, n int) error {
	each := inTurn
	if t.Param("mode") == "parallel" {
		each = atOnce
	}
	crowd := make([]member, n)
	// The next container starts as soon as the engine has started this one, before its first byte.
	err := each(crowd, func(m *member) (err error) {
		m.Running, err = bench.Launch(ctx, t, t.Spec(workload.Ready()...))
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
	err = each(crowd, func(m *member) (err error) {
		m.destroy, m.destroyed, err = m.Destroy(ctx, t)
		return err
	})
	if err != nil {
		return err
	}
	started := bench.Span{Start: crowd[0].CreateSpan.Start, End: crowd[0].StartSpan.End}
	destroyed := crowd[0].destroyed
	for i, m := range crowd {
		create := m.CreateSpan.Start
		started = bench.Span{Start: min(started.Start, create), End: max(started.End, m.StartSpan.End)}
		destroyed = bench.Span{Start: min(destroyed.Start, m.destroyed.Start), End: max(destroyed.End, m.destroyed.End)}
		t.Record("StartLatency", (m.StartSpan.End - create).Seconds())
		t.Record("FirstInstruction", (firsts[i] - create).Seconds())
		t.Record("DestroyLatency", m.destroy.Seconds())
	}
	t.Record("TotalTime", started.Seconds())
	t.Record("DestroyTime", destroyed.Seconds())
	return bench.RecordCost(t)
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
