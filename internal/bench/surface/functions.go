package surface

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// part is a part of the kernel with a metric.
type part struct {
	metric, help string
	subsystems   []string // nil for all that no other part has
}

// parts are the parts of the kernel, in the order of their metrics.
func parts() []part {
	return []part{
		{"FunctionsArchitecture", "the code of the architecture: entry, page faults, context switches", []string{"arch"}},
		{"FunctionsKernel", "the core: scheduler, locks, signals, timers, cgroups", []string{"kernel"}},
		{"FunctionsMemory", "memory management and page cache", []string{"mm"}},
		{"FunctionsFiles", "file systems", []string{"fs"}},
		{"FunctionsNetwork", "the network", []string{"net"}},
		{"FunctionsSecurity", "the security modules", []string{"security"}},
		{"FunctionsDrivers", "drivers and block devices", []string{"drivers", "block"}},
		{"FunctionsLibrary", "the library; most of them are untraceable", []string{"lib"}},
		{"FunctionsOther", "modules and the rest: ipc, crypto, io_uring, and functions without a clear place", nil},
	}
}

// The statements: the number of the functions that the tracer observes, and its time to attach to them. Both are properties of the kernel, and of no
// target.
const (
	observation = "functions that the tracer observes"
	attachment  = "the tracer attached in"
)

// functions counts the functions of the host's kernel that programs reach. surface.calls has the same programs.
func functions() bench.Benchmark {
	metrics := []result.Metric{count("HostFunctionsReached", "distinct functions of the host's kernel that the processes of the container and its sandbox enter while small programs run in it")}
	for _, p := range parts() {
		metrics = append(metrics, count(p.metric, "such functions of "+p.help))
	}
	return bench.Benchmark{
		Name:       "surface.functions",
		Summary:    "the functions of the host's kernel that small programs in a container reach, by themselves or through their sandbox",
		Source:     "peers (the attack profile of Nabla containers; Anjali et al., VEE 2020); method: internal/trace",
		Metrics:    metrics,
		Statements: []string{observation, attachment},
		Traced:     true,
		Functions:  true,
		Needs:      needLoads,
		Run: func(ctx context.Context, t bench.Trial) error {
			run, err := server(ctx, t)
			if err != nil {
				return err
			}
			if err := t.Trace.Begin("programs"); err != nil {
				return err
			}
			number, took, err := t.Trace.Attach()
			if err != nil {
				return err
			}
			for _, l := range loads() {
				if err := run(l); err != nil {
					return err
				}
			}
			counts, err := t.Trace.Counts(monitor.Sandboxed()...)
			if err != nil {
				return err
			}
			t.Condition(observation, strconv.Itoa(number))
			t.Condition(attachment, took.Round(time.Second).String())
			return reportFunctions(t, counts)
		},
	}
}

// reportFunctions records the numbers of distinct functions. Functions of several files may have one name, and count once in each subsystem.
func reportFunctions(t bench.Trial, counts []result.TraceCounts) error {
	names := map[string]bool{}
	for _, c := range counts {
		for name := range c.Functions {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return errors.New("the trace has no function of the kernel")
	}
	t.Record("HostFunctionsReached", float64(len(names)))
	list := parts()
	numbers := make([]int, len(list))
	for name := range names {
		subsystem, _, _ := strings.Cut(name, "/")
		i := slices.IndexFunc(list, func(p part) bool { return slices.Contains(p.subsystems, subsystem) })
		if i < 0 {
			i = len(list) - 1
		}
		numbers[i]++
	}
	for i, p := range list {
		t.Record(p.metric, float64(numbers[i]))
	}
	return nil
}
