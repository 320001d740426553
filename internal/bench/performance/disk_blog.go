package performance

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// blogSpace is the most space that the probe's load takes, in bytes: see probe/files.c.
const blogSpace = 30 << 20

func diskBlog() bench.Benchmark {
	return onStorage(bench.Benchmark{
		Name:    "performance.disk.blog",
		Summary: "concurrent readers and writers of small files",
		Source:  "wang table 2 and section 5.3 (Blogbench: 3 writers, 1 rewriter, 5 commenters, 10 readers)",
		Metrics: []result.Metric{
			bench.Scored(result.DimensionDisk, bench.Higher("ReadScore", result.Score, "whole blogs read per second")),
			bench.Scored(result.DimensionDisk, bench.Higher("WriteScore", result.Score, "whole blogs written per second")),
		},
		Params: []bench.Param{
			duration(500*time.Millisecond, 30*time.Second, "run time of the load"),
			bench.OnParam(bench.Bind, bench.Bind),
		},
	}, func(bench.Params) int64 { return blogSpace }, func(ctx context.Context, t bench.Trial, on storage) (workload.Values, error) {
		// The seed is the same in every trial, so that all targets get the same files.
		load := workload.Files(workload.PaperFilesLoad(bench.DataDir, 1), t.Duration("duration"))
		return bench.Measure(ctx, t, bench.InContainer, load, on.Into)
	})
}
