package limits

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

func cpuTime() bench.Benchmark {
	metrics := []result.Metric{
		seconds("TotalTime", "time until all events are done under the limit (espe: HardLimit)"),
		// A program can begin with a whole quota just before a period ends, and the kernel notices with a tick that one is
		// used up: in a second, this makes up to 1.15.
		optional(bounded("Used", 1.25, "does not hold its CPU limit",
			"CPU time of the container and its sandbox, without shims and daemons, over what the limit allows, from the program's first output to its end; without a limit it is 1 over the limit")),
	}
	return bench.Benchmark{
		Name:    "limits.cpu.time",
		Summary: "a fixed amount of work under a CPU limit, and whether the limit holds",
		Source:  "espe section 5.5, table 1 (HardLimit): 10 % of a CPU, there 1 ms of each 10 ms",
		Metrics: metrics,
		Image:   bench.WorkloadImage, Components: true,
		Params: append(primes("400", "10000"), bench.Param{
			Name: "percent", Help: "the limit in per cent of a CPU", Quick: "10", Paper: "10", Check: bench.IntRange(1, 50),
		}),
		Run: func(ctx context.Context, t bench.Trial) error {
			var prime, events, percent int
			if err := bench.Numbers(t, map[string]*int{"prime": &prime, "events": &events, "percent": &percent}); err != nil {
				return err
			}
			limit := float64(percent) / 100
			t.Condition("CPU limit", percentOfCPU(limit))
			p := workload.SysbenchCPU(prime, events, 1)
			spec := bench.SpecOf(t, p)
			spec.Resources.CPU = limit
			out, err := run(ctx, t, spec)
			if err != nil {
				return err
			}
			values, err := p.Parse(out.text)
			if err != nil {
				return fmt.Errorf("read the output of %q: %w", p.Args, err)
			}
			if out.known {
				values["Used"] = out.cpu.Seconds() / (limit * out.wall.Seconds())
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}

// outcome is what a program wrote, and what the target used meanwhile.
type outcome struct {
	text []byte
	// cpu is the CPU time of what is under the container's limit, wall the time, both from the program's first output to its
	// end. They are known where the engine's costs are.
	cpu, wall time.Duration
	known     bool
}

// run is bench.Program, and takes what the target used meanwhile: what it cost to create and start the container, which is
// mostly not under its limit, is not in it.
func run(ctx context.Context, t bench.Trial, spec engine.Spec) (outcome, error) {
	spoke := make(chan struct{})
	once := sync.OnceFunc(func() { close(spoke) })
	out, complaints := &follower{Watch: t.Watch(), line: func(string) { once() }}, t.Watch()
	spec.Process.Stdout, spec.Process.Stderr = out, complaints
	c, err := start(ctx, t, spec)
	if err != nil {
		return outcome{}, err
	}
	defer c.cancel()
	var before spent
	select {
	case <-spoke:
		if before, err = usage(t); err != nil {
			return outcome{}, err
		}
		<-c.ended
	case <-c.ended: // its output comes afterwards
	}
	after, err := usage(t)
	if err := errors.Join(err, c.failed()); err != nil {
		return outcome{}, err
	}
	end, err := c.remove(ctx, t, out)
	if err != nil {
		return outcome{}, err
	}
	_, began, err := out.FirstLine(ctx)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{text: out.Bytes(), cpu: after.cpu - before.cpu, wall: end - began}
	// If most of the work was done when the output was seen at last, what follows says nothing of the limit.
	o.known = before.known && after.known && o.wall > 0 && 2*o.cpu > before.cpu
	return o, nil
}

// spent is the CPU time that a target has used so far.
type spent struct {
	cpu   time.Duration
	known bool
	alone bool // calls of the runtime have no part in it
}

// usage is the CPU time that the container and its sandbox have used so far, as far as it is known: a daemon's part cannot
// be told from theirs everywhere.
func usage(t bench.Trial) (spent, error) {
	parts, err := t.CPU()
	if err == nil {
		return spent{cpu: parts[monitor.Container] + parts[monitor.Sandbox], known: true, alone: true}, nil
	}
	if !engine.Unsupported(err) {
		return spent{}, err
	}
	all, err := t.Usage()
	if err != nil && !engine.Unsupported(err) {
		return spent{}, err
	}
	return spent{cpu: all.CPU, known: err == nil && !all.IncludesDaemon}, nil
}
