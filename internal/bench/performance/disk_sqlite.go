package performance

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// sqliteSpace is the most space that the database, its journal and the script take for each insertion, in bytes.
const sqliteSpace = 1 << 10

func diskSQLite() bench.Benchmark {
	return onStorage(bench.Benchmark{
		Name:    "performance.disk.sqlite",
		Summary: "insertions in an indexed table of SQLite",
		Source:  "wang section 5.3 and figure 12 (pts/sqlite)",
		Metrics: []result.Metric{
			bench.Headed(result.ColumnDisk, bench.Scored(result.DimensionDisk, bench.Seconds("TotalTime", "time of SQLite's start and of the insertions, each a transaction that is synced (wang: Seconds)"))),
		},
		Image: bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "insertions", Help: "number of rows that are inserted", Quick: "250", Paper: "2500", Check: bench.IntRange(1, 65_536)},
			bench.OnParam(bench.Bind, bench.Bind),
		},
	}, func(p bench.Params) int64 {
		return 1<<20 + int64(p.Int("insertions"))*sqliteSpace
	}, func(ctx context.Context, t bench.Trial, files storage) (workload.Values, error) {
		var stages []stage
		for _, p := range programs.Insertions(t.Int("insertions"), "TotalTime") {
			stages = append(stages, stage{Program: p})
		}
		return files.measure(ctx, t, stages...)
	})
}
