package latency

import (
	"context"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// syscalls measures inside of the container. The probe keeps the histogram and the largest times itself, in the form of the other benchmarks.
func syscalls() bench.Benchmark {
	const metric = "Call"
	return bench.Benchmark{
		Name:    "latency.syscall",
		Summary: "many calls of one system call in a row, one by one, for the worst case",
		Source:  "peers (cyclictest, lmbench)",
		Metrics: metricsOf(metric, "one call with one read of the clock"),
		Params: []bench.Param{
			{Name: "samples", Help: "calls in a trial, after 1000 that do not count", Quick: "10000", Paper: "100000", Check: bench.IntRange(10, 1_000_000)},
			{Name: "call", Help: "the system call, by its name in performance.syscall.latency", Quick: "getpid", Paper: "getpid", Check: bench.OneOf(calls()...)},
		},
		Needs: bench.InMemory(func(p bench.Params) int64 { return 16*int64(p.Int("samples")) + 1<<20 }),
		Run: func(ctx context.Context, t bench.Trial) error {
			p := probe.SingleCall(t.Param("call"), t.Int("samples"))
			values, text, err := bench.Run(ctx, t, bench.InContainer, bench.SpecOf(t, p), p)
			if err != nil {
				return err
			}
			out, err := probe.Parse(text)
			if err != nil {
				return err
			}
			t.Details.Distribution(distribution(metric, out.Calls[0]))
			t.Record(metric, values["P50"])
			t.Record(metric+"P99", values["P99"])
			t.Record(metric+"Max", values["Max"])
			return nil
		},
	}
}

// calls are the calls whose names can be values of parameters.
func calls() []string {
	return slices.DeleteFunc(probe.Calls(), func(name string) bool { return strings.Contains(name, " ") })
}

// distribution is the distribution of a call with its tail.
func distribution(metric string, c probe.Call) result.Distribution {
	d := bench.HistogramOf(metric, c)
	d.Tail = &result.Tail{}
	for _, value := range c.Tail {
		d.Tail.At, d.Tail.Values = append(d.Tail.At, int(value[0])), append(d.Tail.Values, float64(value[1])/1e9)
	}
	return d
}
