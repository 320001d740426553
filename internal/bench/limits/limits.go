// Package limits is the suite of whether limits hold, and what running under them costs. That a limit was accepted says
// little: TouchStone's authors met a runtime that ignored it, and found out by the time that a program took. So what was
// really used is measured here, by what the host counts, and is a metric with a bound.
package limits

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark { return []bench.Benchmark{cpuTime(), cpuScaling(), memoryOOM()} }

// bounded is a metric that exceeds most only where a limit does not hold.
func bounded(name string, most float64, broken, help string) result.Metric {
	return result.Metric{
		Name: name, Unit: result.Ratio, Better: result.Lower, Help: help, Bound: result.Bound{Most: most, Broken: broken},
	}
}

func seconds(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower, Help: help}
}

func optional(m result.Metric) result.Metric {
	m.Optional = true
	return m
}

// primes are the parameters of what is computed under a limit: the load of performance.cpu.time, so often.
func primes(quick, paper string) []bench.Param {
	return []bench.Param{
		{Name: "prime", Help: "up to which number primes are counted", Quick: "20000", Paper: "20000", Check: bench.IntRange(3, 10_000_000)},
		{Name: "events", Help: "how often they are counted", Quick: quick, Paper: paper, Check: bench.IntRange(100, 100_000_000)},
	}
}

// period is how often a container gets its quota anew, in all engines; periods are those of a second.
const (
	period  = "100 ms"
	periods = 10
)

// percentOfCPU spells a limit of CPU time.
func percentOfCPU(cpus float64) string {
	return fmt.Sprintf("%.3g %% of a CPU, in each %s", 100*cpus, period)
}

// follower is a watch that tells of each line when it is whole, in the order of the lines.
type follower struct {
	bench.Watch
	line func(line string)
	rest []byte
}

// maxLine is how much of a line is kept, in bytes: more than any line that is waited for has.
const maxLine = 4096

// Write is called by one goroutine.
func (f *follower) Write(p []byte) (int, error) {
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

// heard notes that a line has come: the watch it gives knows when.
func heard(t bench.Trial) bench.Watch {
	w := t.Watch()
	_, _ = w.Write([]byte("\n")) // a watch takes all
	return w
}

// running is a container whose end is waited for while something else is done.
type running struct {
	engine.Container
	process engine.Process
	ended   chan struct{}
	cancel  context.CancelFunc

	// Of the end, once ended is closed.
	exit engine.Exit
	err  error
}

// start makes a container and lets it run. The caller ends the wait with cancel.
func start(ctx context.Context, t bench.Trial, spec engine.Spec) (*running, error) {
	c, _, err := t.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if _, err := t.Time(ctx, "start", c.Start); err != nil {
		return nil, err
	}
	r := &running{Container: c, process: spec.Process, ended: make(chan struct{})}
	// Bounded by the trial's limit only: how long a program runs is a parameter.
	ctx, r.cancel = context.WithCancel(ctx)
	go func() {
		defer close(r.ended)
		r.exit, r.err = c.Wait(ctx)
	}()
	return r, nil
}

// remove deletes a container that has ended, and waits for the end of its output. It tells when it began, which is
// when the end was known.
func (r *running) remove(ctx context.Context, t bench.Trial, out bench.Watch) (time.Duration, error) {
	// Some engines know only when it is deleted that no more output will come.
	deleted, err := t.Time(ctx, "delete", r.Delete)
	if err != nil {
		return 0, err
	}
	return deleted.Start, out.Ended(ctx)
}

// failed tells why the end is none of a program that did its work.
func (r *running) failed() error {
	switch {
	case r.err != nil:
		return r.err
	case !r.exit.OK():
		return fmt.Errorf("the program %q ended: %v", r.process.Args, r.exit)
	}
	return nil
}
