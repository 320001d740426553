package limits

import (
	"context"
	"errors"
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
		bench.Seconds("TotalTime", "time until all events are done under the limit (espe: HardLimit)"),
		// A program can start with a whole quota just before a period ends, and the kernel notices an exhausted quota only at
		// a tick: within a second this adds up to 1.15.
		optional(bounded("CPULimitUse", 1.25, "does not hold its CPU limit",
			"CPU time of the container and its sandbox, without shims and daemons, over the CPU time that the limit allows, from the program's first output to its exit; without a limit it is 1 over the limit")),
	}
	return bench.Benchmark{
		Name:    "limits.cpu.time",
		Summary: "a fixed amount of work under a CPU limit, and whether the limit holds",
		Source:  "espe section 5.5, table 1 (HardLimit): 10 % of a CPU, there 1 ms of each 10 ms",
		Metrics: metrics,
		Image:   bench.WorkloadImage, Components: true, OwnLimits: []bench.Limit{bench.CPULimit},
		Params: append(primes("400", "10000"), bench.Param{
			Name: "percent", Help: "the limit in per cent of a CPU", Quick: "10", Paper: "10", Check: bench.IntRange(1, 50),
		}),
		Run: func(ctx context.Context, t bench.Trial) error {
			limit := float64(t.Int("percent")) / 100
			t.Condition("CPU limit", percentOfCPU(limit))
			p := workload.SysbenchCPU(t.Int("prime"), t.Int("events"), 1)
			spec := bench.SpecOf(t, p)
			spec.Resources.CPU = limit
			var used usage
			values, _, err := bench.Run(ctx, t, used.measure, spec, p)
			if err != nil {
				return err
			}
			if used.known {
				values["CPULimitUse"] = used.cpu.Seconds() / (limit * used.wall.Seconds())
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}

// usage is the CPU time of the processes under a container's limit, and the elapsed time, both from the program's first
// output to its exit. They are known if the engine's cost is.
type usage struct {
	cpu, wall time.Duration
	known     bool
}

// measure is bench.InContainer, and measures the usage. The cost of creating and starting the container is mostly not under
// its limit and not included.
func (u *usage) measure(ctx context.Context, t bench.Trial, spec engine.Spec) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	output := make(chan struct{})
	once := sync.OnceFunc(func() { close(output) })
	c, err := bench.Follow(ctx, t, spec, func(string, time.Duration) { once() })
	if err != nil {
		return nil, err
	}
	var before cpuCount
	select {
	case <-output:
		if before, err = countCPU(t); err != nil {
			return nil, err
		}
		<-c.Exit.Done
	case <-c.Exit.Done: // its output follows
	}
	after, err := countCPU(t)
	if err := errors.Join(err, c.Exit.Failure()); err != nil {
		return nil, err
	}
	deleted, err := c.Remove(ctx, t)
	if err != nil {
		return nil, err
	}
	_, began, err := c.Output.FirstLine(ctx)
	if err != nil {
		return nil, err
	}
	u.cpu, u.wall = after.cpu-before.cpu, deleted.Start-began // the deletion starts when the exit is known
	// If the output arrived after most of the work was done, the rest proves nothing about the limit.
	u.known = before.known && after.known && u.wall > 0 && 2*u.cpu > before.cpu
	return c.Output.Bytes(), nil
}

// cpuCount is the CPU time of a container and its sandbox so far.
type cpuCount struct {
	cpu   time.Duration
	known bool
	exact bool // calls of the runtime are not included
}

// countCPU reads the CPU time of the container and its sandbox. It is unknown if a daemon's CPU time cannot be separated
// from it.
func countCPU(t bench.Trial) (cpuCount, error) {
	parts, err := t.Cost.CPU()
	if err == nil {
		count := cpuCount{known: true, exact: true}
		for _, c := range monitor.Sandboxed() {
			count.cpu += parts[c]
		}
		return count, nil
	}
	if !engine.Unsupported(err) {
		return cpuCount{}, err
	}
	all, err := t.Cost.Usage()
	if err != nil && !engine.Unsupported(err) {
		return cpuCount{}, err
	}
	return cpuCount{cpu: all.CPU, known: err == nil && !all.IncludesDaemon}, nil
}
