package performance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// latency has a metric for each system call: the median of its distribution. The whole distributions are kept beside the
// samples.
func latency() bench.Benchmark {
	var metrics []result.Metric
	for _, name := range workload.Calls() {
		metrics = append(metrics, seconds(name, "median time of one call, timed in batches"))
	}
	return bench.Benchmark{
		Name:    "performance.syscall.latency",
		Summary: "time of single system calls, with the distribution for each",
		Source:  "peers (lmbench, gVisor's benchmarks)",
		Metrics: metrics,
		Params:  []bench.Param{duration(500*time.Millisecond, 10*time.Second, "run time, all calls together")},
		Run: func(ctx context.Context, t bench.Trial) error {
			out, err := runProbe(ctx, t, workload.Latency(t.Duration("duration")))
			if err != nil {
				return err
			}
			for _, name := range workload.Calls() {
				i := slices.IndexFunc(out.Calls, func(c workload.Call) bool { return c.Name == name })
				if i < 0 {
					return fmt.Errorf("the program's output has no call %s", name)
				}
				if out.Calls[i].P50 <= 0 {
					return fmt.Errorf("the program's output has 0 for %s", name)
				}
				t.Record(name, out.Calls[i].P50.Seconds())
				t.RecordDistribution(distributionOf(out.Calls[i]))
			}
			return nil
		},
	}
}

func distributionOf(c workload.Call) result.Distribution {
	d := result.Distribution{Metric: c.Name, Unit: result.Seconds, Batch: c.Batch}
	for _, b := range c.Histogram {
		d.Lows = append(d.Lows, b.Low.Seconds())
		d.Counts = append(d.Counts, b.Count)
	}
	return d
}
