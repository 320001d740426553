// Package limits is the suite of resource limits: whether they hold, and the cost of running under them. An accepted limit
// proves little: TouchStone's authors found a runtime that ignored it, by the time that a program took. Therefore these
// benchmarks measure the real use of a resource, as the host counts it, and record it as a metric with a bound.
package limits

import (
	"bytes"
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark { return []bench.Benchmark{cpuTime(), cpuScaling(), memoryOOM()} }

// bounded is a metric that exceeds most only if a limit does not hold.
func bounded(name string, most float64, broken, help string) result.Metric {
	return result.Metric{
		Name: name, Unit: result.Ratio, Better: result.Lower, Help: help, Bound: result.Bound{Most: most, Broken: broken},
	}
}

func optional(m result.Metric) result.Metric {
	m.Optional = true
	return m
}

// primes are the parameters of the load under a limit: the load of performance.cpu.time, with its own number of events.
func primes(quick, paper string) []bench.Param {
	return []bench.Param{
		{Name: "prime", Help: "largest number in the search for primes", Quick: "20000", Paper: "20000", Check: bench.IntRange(3, 10_000_000)},
		{Name: "events", Help: "number of searches", Quick: quick, Paper: paper, Check: bench.IntRange(100, 100_000_000)},
	}
}

// period is the period of CPU quotas in all engines; periods is the number of periods in a second.
const (
	period  = "100 ms"
	periods = 10
)

// percentOfCPU formats a CPU limit.
func percentOfCPU(cpus float64) string {
	return fmt.Sprintf("%.3g %% of a CPU, in each %s", 100*cpus, period)
}

// lineWatch is a watch that calls line for each complete line of output, in order.
type lineWatch struct {
	bench.Watch
	line func(line string)
	rest []byte
}

// maxLine is the number of bytes that is kept of a line, more than any expected line has.
const maxLine = 4096

// Write is called by one goroutine.
func (f *lineWatch) Write(p []byte) (int, error) {
	n, err := f.Watch.Write(p) // first, since it notes the time
	for piece := range bytes.Lines(p) {
		text, ends := bytes.CutSuffix(piece, []byte("\n"))
		f.rest = append(f.rest, text[:min(len(text), maxLine-len(f.rest))]...)
		if ends {
			f.line(string(f.rest))
			f.rest = f.rest[:0]
		}
	}
	return n, err
}

// timestamp returns a watch whose first byte has the current time.
func timestamp(t bench.Trial) bench.Watch {
	w := t.Watch()
	_, _ = w.Write([]byte("\n")) // a watch never fails
	return w
}

// limited is a container that runs under a limit while its exit is awaited.
type limited struct {
	*bench.Running
	exit *bench.Exit
}

// start launches a container and calls line for each line of its output. The context bounds the wait for its exit.
func start(ctx context.Context, t bench.Trial, spec engine.Spec, line func(string)) (limited, error) {
	spec.Process.Stdout, spec.Process.Stderr = &lineWatch{Watch: t.Watch(), line: line}, t.Watch()
	r, err := bench.Launch(ctx, t, spec)
	if err != nil {
		return limited{}, err
	}
	return limited{r, r.Await(ctx)}, nil
}
