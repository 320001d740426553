// Package scalability is the suite of the behaviour of engines under a growing number of containers.
package scalability

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

const prefix = "scalability.runtime."

// largest bounds the number of containers of one trial: beyond it hosts run out of processes and pipes before a runtime
// reaches its limits. The runner skips numbers that do not fit on the host.
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
		Needs: func(bench.Params) bench.Needs { return bench.Needs{Containers: n} },
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

const ratePrefix = "scalability.rate."

// mostWorkers bounds the workers of one trial, far above the parallelism of any engine.
const mostWorkers = 256

func rate(workers int) bench.Benchmark {
	return bench.Benchmark{
		Name:    ratePrefix + strconv.Itoa(workers),
		Summary: fmt.Sprintf("complete lifecycles of containers by %d workers at once: create, start, wait for the exit, delete", workers),
		Source:  "peers (containerd-stress, bucketbench)",
		Metrics: []result.Metric{
			bench.Higher("Rate", result.PerSecond, "lifecycles per second of all workers together, from before the first create to the end of the last delete"),
		},
		Params: []bench.Param{{
			Name: "lives", Help: "lifecycles in a trial, all workers together", Quick: "16", Paper: "200",
			Check: bench.IntRange(1, largest),
		}},
		Needs: func(bench.Params) bench.Needs { return bench.Needs{Containers: workers} },
		Run: func(ctx context.Context, t bench.Trial) error {
			return drive(ctx, t, workers, t.Int("lives"))
		},
	}
}

// drive shares the lifecycles among the workers: an idle worker takes the next one.
func drive(ctx context.Context, t bench.Trial, workers, lives int) error {
	spans := make([]bench.Span, lives)
	errs := make([]error, workers)
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= lives {
					return
				}
				if spans[n], errs[w] = life(ctx, t); errs[w] != nil {
					next.Store(int64(lives)) // the trial has failed: no worker begins another lifecycle
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	whole := spans[0]
	for _, s := range spans {
		whole.Start, whole.End = min(whole.Start, s.Start), max(whole.End, s.End)
	}
	t.Record("Rate", float64(lives)/whole.Seconds())
	return nil
}

// life creates, starts and deletes one container, whose program exits at once.
func life(ctx context.Context, t bench.Trial) (bench.Span, error) {
	c, err := bench.Launch(ctx, t, t.Spec(workload.Exit(0)...))
	if err != nil {
		return bench.Span{}, err
	}
	if err := c.WaitOK(ctx); err != nil {
		return bench.Span{}, err
	}
	remove, err := c.Remove(ctx, t)
	if output := c.Output.Bytes(); err == nil && len(output) > 0 {
		err = fmt.Errorf("the program must write nothing and wrote %.100q", output)
	}
	return bench.Span{Start: c.CreateSpan.Start, End: remove.End}, err
}
