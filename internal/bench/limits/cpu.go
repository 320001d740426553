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
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func cpuTime() bench.Benchmark {
	metrics := []result.Metric{
		bench.Seconds("TotalTime", "time until all events are done under the limit (espe: HardLimit)"),
		// A program can start with a whole quota just before a period ends, and the kernel notices an exhausted quota only at
		// a tick: within a second this adds up to 1.15.
		optional(bounded("CPULimitUse", 1.25, "does not hold its CPU limit",
			"CPU time of the container and its sandbox, without shims and daemons, over the CPU time that the limit allows, from the program's first output to its exit; without a limit it is 1 over the limit; in a virtual machine the container's own CPU time, as its guest counts it")),
		optional(bounded("HostLimitUse", 1.25, "exceeds the CPU limit of its pod on the host",
			"CPU time of a virtual machine on the host over the limit of its pod there: the container's limit with the overhead of the virtual machine; left out if the engine sets no such limit")),
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
			p := programs.SysbenchCPU(t.Int("prime"), t.Int("events"), 1)
			spec := bench.SpecOf(t, p)
			spec.Resources.CPU = limit
			var consumption usage
			values, _, err := bench.Run(ctx, t, consumption.measure, spec, p)
			if err != nil {
				return err
			}
			if consumption.known {
				values["CPULimitUse"] = consumption.cpu.Seconds() / (limit * consumption.wall.Seconds())
			}
			if atHost := limit + t.Info.Overhead.CPU; consumption.host.known && atHost > limit {
				values["HostLimitUse"] = consumption.host.cpu.Seconds() / (atHost * consumption.hostWall.Seconds())
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}

// usage is the CPU time of the processes under a container's limit, and the elapsed time, both from the program's first
// output to its exit, or in a virtual machine to its last reading. They are known if the engine's cost is.
type usage struct {
	cpu, wall time.Duration
	known     bool

	// The same of a virtual machine on the host. Without one they are unknown.
	host     cpuCount
	hostWall time.Duration
}

// measure is bench.InContainer, and measures the usage. The cost of creating and starting the container is mostly not under
// its limit and not included.
func (u *usage) measure(ctx context.Context, t bench.Trial, spec engine.Spec) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	output := make(chan struct{})
	notify := sync.OnceFunc(func() { close(output) })
	c, err := bench.Follow(ctx, t, spec, func(string, time.Duration) { notify() })
	if err != nil {
		return nil, err
	}
	var start cpuCount
	select {
	case <-output:
		if start, err = countCPU(t); err != nil {
			return nil, err
		}
		if t.Info.Isolation == engine.VM {
			err = u.followGuest(ctx, t, c)
		}
		<-c.Exit.Done
	case <-c.Exit.Done: // its output follows
	}
	end, errAfter := countCPU(t)
	if err := errors.Join(err, errAfter, c.Exit.Failure()); err != nil {
		return nil, err
	}
	removal, err := c.Remove(ctx, t)
	if err != nil {
		return nil, err
	}
	_, outputTime, err := c.Output.FirstLine(ctx)
	if err != nil {
		return nil, err
	}
	cpu, wall := end.cpu-start.cpu, removal.Start-outputTime // the deletion starts when the exit is known
	isKnown := start.known && end.known && wall > 0
	if t.Info.Isolation == engine.VM {
		u.host, u.hostWall = cpuCount{cpu: cpu, known: isKnown}, wall
		return c.Output.Bytes(), nil
	}
	u.cpu, u.wall = cpu, wall
	// If the output arrived after most of the work was done, the rest proves nothing about the limit.
	u.known = isKnown && 2*cpu > start.cpu
	return c.Output.Bytes(), nil
}

// guestPause is the time between two readings of a guest's count.
const guestPause = time.Second

// followGuest measures the usage of a container in a virtual machine until its program exits. The engine does not report the
// usage of an exited container, so the last reading before the exit counts.
func (u *usage) followGuest(ctx context.Context, t bench.Trial, c bench.Followed) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		<-c.Exit.Done
		stop()
	}()
	var first, last mark
	for pause := time.Duration(0); ; pause = guestPause {
		moment, err := t.Sleep(running, pause)
		if err == nil {
			last.at = moment
			last.used, err = countGuest(running, t, c.Container)
		}
		if pause == 0 {
			first = last
		}
		switch {
		case running.Err() != nil && ctx.Err() == nil: // it has exited
			return nil
		case err != nil:
			if exited(ctx, c) {
				return nil // in between
			}
			return err
		case !last.used.known:
			return nil
		}
		u.cpu, u.wall = last.used.cpu-first.used.cpu, last.at-first.at
		u.known = u.wall.Seconds() >= leastInterval && 2*u.cpu > first.used.cpu
	}
}

// countGuest returns the CPU time of a container in a virtual machine by the count of its guest, which the engine reports. On
// the host the CPU time of the machine includes the guest's kernel and the devices, which are not under the container's limit.
func countGuest(ctx context.Context, t bench.Trial, c engine.Container) (cpuCount, error) {
	if err := t.Require(bench.Needs{Capabilities: []engine.Capability{engine.CanStats}}); err != nil {
		return cpuCount{}, unlessUnsupported(err)
	}
	meter, err := bench.Optional[engine.Meter](c, engine.CanStats)
	if err != nil {
		return cpuCount{}, err
	}
	sample, err := meter.Stats(ctx)
	return cpuCount{cpu: sample.CPU, known: err == nil, exact: true}, err
}

// unlessUnsupported drops the errors of missing capabilities.
func unlessUnsupported(err error) error {
	if engine.Unsupported(err) {
		return nil
	}
	return err
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
	sample, err := t.Cost.Usage()
	if err != nil && !engine.Unsupported(err) {
		return cpuCount{}, err
	}
	return cpuCount{cpu: sample.CPU, known: err == nil && !sample.IncludesDaemon}, nil
}
