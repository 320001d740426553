package performance

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// latency has a metric for each system call: the median of its distribution. The whole distributions are kept beside the
// samples.
func latency() bench.Benchmark {
	var metrics []result.Metric
	for _, name := range probe.Calls() {
		metrics = append(metrics, bench.Seconds(name, "median time of one call, timed in batches"))
	}
	return bench.Benchmark{
		Name:    "performance.syscall.latency",
		Summary: "time of single system calls, with the distribution for each",
		Source:  "peers (lmbench, gVisor's benchmarks)",
		Metrics: metrics,
		Params:  []bench.Param{duration(500*time.Millisecond, 10*time.Second, "run time, all calls together")},
		Run: func(ctx context.Context, t bench.Trial) error {
			p := probe.Latency(t.Duration("duration"))
			values, text, err := bench.Run(ctx, t, bench.InContainer, bench.SpecOf(t, p), p)
			if err != nil {
				return err
			}
			out, err := probe.Parse(text)
			if err != nil {
				return err
			}
			for _, c := range out.Calls {
				t.Details.Distribution(bench.HistogramOf(c.Name, c))
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}
