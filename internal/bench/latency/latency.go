// Package latency is the suite for the worst case: many times of one cheap operation in each trial, so that a report can bound the rare ones.
//
// The times go into a histogram with the largest ones whole, so that a million samples take bounded memory. They leave no phases. The median of a trial
// is a metric as in other suites, and so are its 99th percentile and its maximum. The maximum grows with the number of samples: compare it only
// between trials with the same parameter.
package latency

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{execs(), starts(), syscalls()}
}

// unrecorded is the number of operations before the first sample. They fill caches, and would be a drift of their own.
const unrecorded = 10

// mostCode is the highest exit code of a process of these benchmarks. Engines use higher codes for programs that did not run, and for signals.
const mostCode = 124

func execs() bench.Benchmark {
	const metric = "Exec"
	return bench.Benchmark{
		Name:    "latency.exec",
		Summary: "many processes in a row in a running container, for the worst case",
		Source:  "peers (cyclictest)",
		Metrics: metricsOf(metric, "from the call to the exit of a further process that does nothing"),
		Params:  samples(1_000_000),
		Needs:   bench.Always(engine.CanExec),
		Run: func(ctx context.Context, t bench.Trial) error {
			running, err := bench.Start(ctx, t)
			if err != nil {
				return err
			}
			c, err := bench.Optional[engine.Execer](running.Container, engine.CanExec)
			if err != nil {
				return err
			}
			return repeat(t, metric, func() (time.Duration, error) {
				// The code is random, so that only the process itself can bring it back.
				want, got := engine.Exit{Code: 1 + rand.IntN(mostCode)}, engine.Exit{}
				span, err := t.Time(ctx, "exec", func(ctx context.Context) (err error) {
					got, err = c.Exec(ctx, engine.Process{Args: probe.Exit(want.Code)})
					return err
				})
				if err == nil && got != want {
					err = fmt.Errorf("exec returned success without running its process: want the process's %v, got %v", want, got)
				}
				return span.Length(), err
			})
		},
	}
}

func starts() bench.Benchmark {
	const metric = "Start"
	return bench.Benchmark{
		Name:    "latency.start",
		Summary: "many containers, one after the other, for the worst case of their start",
		Source:  "peers (cyclictest), with CreateAndRun of espe",
		Metrics: metricsOf(metric, "create and start of a container together"),
		Needs:   bench.Always(engine.DirectCalls),
		Params:  samples(50_000),
		Run: func(ctx context.Context, t bench.Trial) error {
			return repeat(t, metric, func() (time.Duration, error) {
				c, err := bench.Launch(ctx, t, t.Spec(probe.Exit(0)...))
				if err != nil {
					return 0, err
				}
				if err := c.WaitOK(ctx); err != nil {
					return 0, err
				}
				if _, err := c.Remove(ctx, t); err != nil {
					return 0, err
				}
				if output := c.Output.Bytes(); len(output) > 0 {
					return 0, fmt.Errorf("the program must write nothing and wrote %.100q", output)
				}
				t.Latency.Forget(c.Container, c.Output)
				return c.CreateSpan.Length() + c.StartSpan.Length(), nil
			})
		},
	}
}

// quantiles are the metrics of a trial: the suffix of the name, and the share of the samples that are not larger.
var quantiles = []struct {
	suffix, help string
	share        float64
}{
	{"", "median of the trial", 0.5},
	{"P99", "99th percentile of the trial", 0.99},
	{"Max", "largest sample of the trial", 1},
}

func metricsOf(name, help string) []result.Metric {
	var metrics []result.Metric
	for _, q := range quantiles {
		metrics = append(metrics, bench.Seconds(name+q.suffix, q.help+": "+help))
	}
	return metrics
}

// samples is the parameter of the suite. The tests of the project and the plan standard need few samples; the plan latency has more.
func samples(limit int) []bench.Param {
	return []bench.Param{{
		Name: "samples", Help: fmt.Sprintf("operations in a trial, after %d that do not count", unrecorded), Quick: "30", Paper: "1000",
		Check: bench.IntRange(10, limit),
	}}
}

// repeat takes the samples of a trial, and records its metrics.
func repeat(t bench.Trial, metric string, operate func() (time.Duration, error)) error {
	for n := range unrecorded + t.Int("samples") {
		d, err := operate()
		if err == nil && n >= unrecorded {
			err = t.Latency.Sample(metric, d)
		}
		if err != nil {
			return fmt.Errorf("operation %d: %w", n+1, err)
		}
	}
	for _, q := range quantiles {
		t.Record(metric+q.suffix, t.Latency.Quantile(metric, q.share).Seconds())
	}
	return nil
}
