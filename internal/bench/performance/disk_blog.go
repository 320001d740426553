package performance

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// blogSpace is what the probe's load fills at most, in bytes: see probe/files.c.
const blogSpace = 30 << 20

func diskBlog() bench.Benchmark {
	metrics := []result.Metric{
		higher("ReadScore", result.Score, "blogs read whole a second"),
		higher("WriteScore", result.Score, "blogs written whole a second"),
	}
	return bench.Benchmark{
		Name:    "performance.disk.blog",
		Summary: "concurrent readers and writers of small files",
		Source:  "wang table 2 and section 5.3 (Blogbench: 3 writers, 1 rewriter, 5 commenters, 10 readers)",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Disk},
		Params: []bench.Param{
			duration(500*time.Millisecond, 30*time.Second, "how long the load runs"),
			bench.OnParam(bench.Bind, bench.Bind),
		},
		Space: func(p bench.Params) bench.Space { return spaceOf(p, blogSpace) },
		Run: func(ctx context.Context, t bench.Trial) error {
			d, err := settings(t, nil)
			if err != nil {
				return err
			}
			on, err := storageOf(t, bench.Warm)
			if err != nil {
				return err
			}
			// The same seed in every trial: all targets get the same files.
			spec := t.Spec(workload.Files(workload.PaperFilesLoad(bench.DataDir, 1), d)...)
			on.Into(&spec)
			out, err := measure(ctx, t, spec)
			if err != nil {
				return err
			}
			return record(t, out, metrics)
		},
	}
}
