// Package operations is the suite of the operations of engines on containers and images: the latency of each operation,
// and its cost to the host.
package operations

import (
	"context"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	benchmarks := []bench.Benchmark{lifecycle(), exec(), pause(), update(), stats(), pull(), service(), energyLifecycle()}
	for i := range benchmarks {
		benchmarks[i].Phases = true
	}
	return benchmarks
}

// repeated completes a benchmark that repeats operations on one running container. The container implements T, which the
// capability promises. Operate receives the number of the repetition.
func repeated[T any](b bench.Benchmark, capability engine.Capability, operate func(ctx context.Context, t bench.Trial, c T, n int) error) bench.Benchmark {
	return repeatedOn(b, capability, func(ctx context.Context, t bench.Trial) (engine.Container, func(context.Context, T, int) error, error) {
		running, err := bench.Start(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		return running.Container, func(ctx context.Context, c T, n int) error { return operate(ctx, t, c, n) }, nil
	})
}

// repeatedOn is repeated on the container that start runs. Start also returns the operation.
func repeatedOn[T any](b bench.Benchmark, capability engine.Capability, start func(ctx context.Context, t bench.Trial) (engine.Container, func(context.Context, T, int) error, error)) bench.Benchmark {
	for i := range b.Metrics {
		b.Metrics[i].Series = true
	}
	b.Params = []bench.Param{{
		Name: "repeats", Help: "operations in a row in the same container", Quick: "5", Paper: "20", Check: bench.IntRange(1, 1000),
	}}
	b.Needs = bench.Always(capability)
	b.Run = func(ctx context.Context, t bench.Trial) error {
		container, operate, err := start(ctx, t)
		if err != nil {
			return err
		}
		c, err := bench.Optional[T](container, capability)
		for n := 0; err == nil && n < t.Int("repeats"); n++ {
			err = operate(ctx, c, n)
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

func phrased(phrase string, m result.Metric) result.Metric {
	m.Phrase = phrase
	return m
}
