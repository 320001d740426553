package reporttest

import (
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Surfaces is Small with the sizes of the surfaces of both targets. native has no filters, and the calls of oci/runc differ between the trials.
func Surfaces() result.Run {
	run := Small()
	const calls, filters = "surface.calls", "surface.filters"
	count := func(name string, surface result.Surface) result.Metric {
		return result.Metric{Name: name, Unit: result.Count, Better: result.Lower, NoVerdict: "a count of rights is no measure of safety", Surface: surface, Help: "system calls"}
	}
	run.Bench[0].Metrics[slices.IndexFunc(run.Bench[0].Metrics, func(m result.Metric) bool { return m.Name == "CreateAndRun" })].Column = result.ColumnStart
	run.Bench = append(run.Bench,
		result.Benchmark{Name: filters, Summary: "the calls that filters allow", Metrics: []result.Metric{count("HostCalls", result.SurfaceAllowed)}},
		result.Benchmark{Name: calls, Summary: "the calls that programs reach", Metrics: []result.Metric{count("HostCallsReached", result.SurfaceReached)}},
	)
	for i := range run.Bench {
		for n := range run.Bench[i].Metrics {
			run.Bench[i].Metrics[n].Optional = true
		}
	}
	add := func(benchmark, target string, block int, values ...result.Sample) {
		run.Trials = append(run.Trials, result.Trial{
			Seq: run.Trials[len(run.Trials)-1].Seq + 1, Cell: result.Cell{Benchmark: benchmark, Target: target}, Block: block, Status: result.OK,
			Started: run.Started.Add(time.Hour), Elapsed: time.Second, Samples: values,
		})
	}
	for block := range blocks {
		for _, target := range []string{"native", "oci/runc"} {
			components := []result.TraceCounts{{Step: "files", Component: "container", Calls: map[string]int64{"openat": 7, "read": int64(30 + block)}}}
			if target == "oci/runc" {
				components = append(components, result.TraceCounts{Step: "files", Component: "sandbox", Calls: map[string]int64{"futex": 12, "openat": 2}})
				if block%2 == 0 {
					components = append(components, result.TraceCounts{Step: "memory", Component: "sandbox", Calls: map[string]int64{"madvise": 1}})
				}
				add(filters, target, block, result.Sample{Metric: "HostCalls", Value: 312})
			}
			names := map[string]bool{}
			for _, c := range components {
				for name := range c.Calls {
					names[name] = true
				}
			}
			add(calls, target, block, result.Sample{Metric: "HostCallsReached", Value: float64(len(names))})
			run.Traces = append(run.Traces, result.Trace{
				Seq: len(run.Traces) + 1, Cell: result.Cell{Benchmark: calls, Target: target}, Status: result.OK,
				Started: run.Started.Add(time.Hour), Elapsed: time.Second, Counts: components,
			})
		}
	}
	return run
}
