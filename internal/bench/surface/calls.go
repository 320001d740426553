package surface

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// load is a small program of surface.calls and surface.functions. Its name is the step of its counts.
type load struct {
	name, metric, help string
	argv               func(port int) []string
}

// loads are the programs, in their order. The server that the first one reaches is the first process of the container.
func loads() []load {
	const (
		reachLimit = time.Minute
		filesTime  = 100 * time.Millisecond
		memoryMiB  = 8
	)
	exit := workload.Program{Args: probe.Exit(0)}
	fixed := func(argv []string) func(int) []string { return func(int) []string { return argv } }
	return []load{
		{"network", "ReachedByNetwork", "such calls while a program connects to a server in the same container", func(port int) []string {
			return probe.Reach(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), reachLimit)
		}},
		{"files", "ReachedByFiles", "such calls while programs write and read small files in a directory of the host", fixed(
			probe.Files(probe.FilesLoad{Dir: bench.DataDir, Writers: 1, Rewriters: 1, Commenters: 1, Readers: 1}, filesTime).Args,
		)},
		{"processes", "ReachedByProcesses", "such calls while a program starts four programs", fixed(probe.Sequence("/", exit, exit, exit, exit).Args)},
		{"memory", "ReachedByMemory", fmt.Sprintf("such calls while a program takes %d MiB of memory", memoryMiB), fixed(probe.Grow(memoryMiB))},
	}
}

// filesSpace is the most space of the programs' files: one writer of the bounded mixture.
const filesSpace = 10 << 20

// calls counts the system calls of the host that programs reach: directly, or through the processes of their sandbox. The counts begin when the
// container runs, so that the set-up of the container and of its sandbox is not in them.
//
// The tracer slows the programs down, and no result is a time.
func calls() bench.Benchmark {
	metrics := []result.Metric{sized(result.SurfaceReached, count("HostCallsReached", "distinct system calls of the host that the processes of the container and its sandbox make while small programs run in it"))}
	for _, l := range loads() {
		metrics = append(metrics, count(l.metric, l.help))
	}
	return bench.Benchmark{
		Name:    "surface.calls",
		Summary: "the system calls of the host that small programs in a container reach, by themselves or through their sandbox",
		Source:  "peers (the attack profile of Nabla containers; Anjali et al., VEE 2020); method: internal/trace",
		Metrics: metrics,
		Traced:  true,
		Needs:   needLoads,
		Run: func(ctx context.Context, t bench.Trial) error {
			run, err := server(ctx, t)
			if err != nil {
				return err
			}
			for _, l := range loads() {
				if err := t.Trace.Begin(l.name); err != nil {
					return err
				}
				if err := run(l); err != nil {
					return err
				}
			}
			counts, err := t.Trace.Counts(monitor.Sandboxed()...)
			if err != nil {
				return err
			}
			return reportCalls(t, counts)
		},
	}
}

// needLoads are the requirements of the programs.
func needLoads(bench.Params) bench.Needs {
	needs := bench.Bind.Needs(filesSpace)
	needs.Capabilities = append(needs.Capabilities, engine.OnHost, engine.CanExec)
	return needs
}

// server starts a container with the server. run runs a program beside it.
func server(ctx context.Context, t bench.Trial) (run func(load) error, err error) {
	volume, err := bench.Bind.Mount(t)
	if err != nil {
		return nil, err
	}
	spec := t.Spec(probe.Serve(0)...)
	volume.Into(&spec)
	r, err := bench.Launch(ctx, t, spec)
	if err != nil {
		return nil, err
	}
	line, _, err := r.FirstLine(ctx)
	if err != nil {
		return nil, err
	}
	port, err := probe.ParseServing(line)
	if err != nil {
		return nil, err
	}
	return func(l load) error {
		if _, err := bench.Within(r.Container)(ctx, t, t.Spec(l.argv(port)...)); err != nil {
			return fmt.Errorf("run the program for %s: %w", l.name, err)
		}
		return nil
	}, nil
}

// reportCalls records the number of distinct calls.
func reportCalls(t bench.Trial, counts []result.TraceCounts) error {
	names, steps := map[string]bool{}, map[string]map[string]bool{}
	for _, c := range counts {
		if steps[c.Step] == nil {
			steps[c.Step] = map[string]bool{}
		}
		for name := range c.Calls {
			steps[c.Step][name] = true
		}
	}
	for _, l := range loads() {
		maps.Copy(names, steps[l.name])
		t.Record(l.metric, float64(len(steps[l.name])))
	}
	if len(names) == 0 {
		return fmt.Errorf("the trace has no system call of the container: want at least the calls of %d programs", len(loads()))
	}
	t.Record("HostCallsReached", float64(len(names)))
	return nil
}
