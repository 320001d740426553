package performance

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// sqliteSpace is what the database, its journal and the script take at most for each insertion, in bytes.
const sqliteSpace = 1 << 10

func diskSQLite() bench.Benchmark {
	metrics := []result.Metric{
		total("TotalTime", "time of the insertions, each a transaction that is synced, with SQLite's start (wang: Seconds)"),
	}
	return bench.Benchmark{
		Name:    "performance.disk.sqlite",
		Summary: "insertions in an indexed table of SQLite",
		Source:  "wang section 5.3 and figure 12 (pts/sqlite)",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Disk},
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "insertions", Help: "how many rows are inserted", Quick: "250", Paper: "2500", Check: bench.IntRange(1, 65_536)},
			bench.OnParam(bench.Bind, bench.Bind),
		},
		Space: func(p bench.Params) bench.Space {
			var n int
			if bench.Numbers(p, map[string]*int{"insertions": &n}) != nil {
				return bench.Space{} // Resolve refuses it
			}
			return spaceOf(p, 1<<20+int64(n)*sqliteSpace)
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var n int
			if err := bench.Numbers(t, map[string]*int{"insertions": &n}); err != nil {
				return err
			}
			on, err := storageOf(t, bench.Warm)
			if err != nil {
				return err
			}
			var stages []stage
			for _, step := range workload.Insertions(n, "TotalTime") {
				stages = append(stages, stage{Step: step})
			}
			values, err := on.measure(ctx, t, stages...)
			if err != nil {
				return err
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}
