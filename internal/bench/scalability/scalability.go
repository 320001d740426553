// Package scalability is the suite of how an engine bears up as containers get more.
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
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

const prefix = "scalability.runtime."

// largest bounds the number of containers of one trial: beyond it hosts run out of
// processes and pipes before they say anything about a runtime.
const largest = 10_000

// Benchmarks lists the sizes of the paper, and the rates.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{runtime(5), runtime(10), runtime(50), rate(1), rate(4), rate(8)}
}

// Lookup gives the benchmark for any size: scalability.runtime.N and scalability.rate.N.
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
	metric := func(name, help string) result.Metric {
		return result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower, Help: help}
	}
	whole := func(name, phrase, help string) result.Metric {
		m := metric(name, help)
		m.Phrase = fmt.Sprintf("%s %d containers in", phrase, n)
		return m
	}
	each := func(name, help string) result.Metric {
		m := metric(name, help)
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
			each("StartLatency", "create and start of each container, in the order of their number: as a function of how many run already"),
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
	container           engine.Container
	out                 bench.Watch
	create, start, gone bench.Span
	destroy             time.Duration // without the time between its phases
}

func run(ctx context.Context, t bench.Trial, n int) error {
	each := inTurn
	if t.Param("mode") == "parallel" {
		each = atOnce
	}
	crowd := make([]member, n)
	if err := each(crowd, func(m *member) error { return m.begin(ctx, t) }); err != nil {
		return err
	}
	for i := range crowd {
		if err := bench.CheckReady(ctx, crowd[i].out); err != nil {
			return fmt.Errorf("container %d of %d: %w", i+1, n, err)
		}
	}
	err := each(crowd, func(m *member) (err error) {
		m.destroy, m.gone, err = bench.Destroy(ctx, t, m.container)
		return err
	})
	if err != nil {
		return err
	}
	began, ended := crowd[0].create.Start, crowd[0].start.End
	killed, gone := crowd[0].gone.Start, crowd[0].gone.End
	for _, m := range crowd {
		began, ended = min(began, m.create.Start), max(ended, m.start.End)
		killed, gone = min(killed, m.gone.Start), max(gone, m.gone.End)
		_, first, err := m.out.FirstLine(ctx)
		if err != nil {
			return err
		}
		t.Record("StartLatency", (m.start.End - m.create.Start).Seconds())
		t.Record("FirstInstruction", (first - m.create.Start).Seconds())
		t.Record("DestroyLatency", m.destroy.Seconds())
	}
	t.Record("TotalTime", (ended - began).Seconds())
	t.Record("DestroyTime", (gone - killed).Seconds())
	return bench.RecordCost(t)
}

// begin creates and starts the container. It does not wait for its first byte: the next
// one is to start as soon as the engine says that this one did.
func (m *member) begin(ctx context.Context, t bench.Trial) (err error) {
	m.out = t.Watch()
	spec := t.Spec(workload.Ready()...)
	spec.Process.Stdout = m.out
	if m.container, m.create, err = t.Create(ctx, spec); err != nil {
		return err
	}
	m.start, err = t.Time(ctx, "start", m.container.Start)
	return err
}

// inTurn does one member after the other and stops at the first error.
func inTurn(crowd []member, do func(*member) error) error {
	for i := range crowd {
		if err := do(&crowd[i]); err != nil {
			return fmt.Errorf("container %d of %d: %w", i+1, len(crowd), err)
		}
	}
	return nil
}

// atOnce does all members in parallel.
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
