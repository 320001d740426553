package performance

import (
	"context"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The values of the parameter mixture.
const (
	boundedMixture   = "bounded"
	blogbenchMixture = "blogbench"
)

// boundedSpace is the most space that the bounded mixture takes, in bytes: see probe/files.c.
const boundedSpace = 30 << 20

func blogSpace(p bench.Params) int64 {
	if p.Param("mixture") == blogbenchMixture {
		return int64(p.Int("space")) << 20
	}
	return boundedSpace
}

func diskBlog() bench.Benchmark {
	total := func(name, help, rate string) result.Metric {
		m := bench.Higher(name, result.Count, help+" in the whole time, as Blogbench reports them")
		m.DerivedFrom = rate
		return m
	}
	return onStorage(bench.Benchmark{
		Name:    "performance.disk.blog",
		Summary: "concurrent readers and writers of small files",
		Source:  "wang table 2 and section 5.3 (Blogbench: 3 writers, 1 rewriter, 5 commenters, 10 readers)",
		Metrics: []result.Metric{
			bench.Scored(result.DimensionDisk, bench.Higher("ReadScore", result.Score, "whole blogs read per second")),
			bench.Scored(result.DimensionDisk, bench.Higher("WriteScore", result.Score, "whole blogs written per second")),
			total("BlogsRead", "whole blogs read", "ReadScore"),
			total("BlogsWritten", "whole blogs written", "WriteScore"),
		},
		Params: []bench.Param{
			duration(500*time.Millisecond, 5*time.Minute, "run time of the load; Blogbench runs for five minutes"),
			{
				Name: "mixture", Quick: boundedMixture, Paper: blogbenchMixture, Check: bench.OneOf(boundedMixture, blogbenchMixture),
				Help: "blogbench has Blogbench's own blogs, each with up to 100 articles, pictures and comments; bounded has small blogs in 30 MiB",
			},
			{
				Name: "space", Quick: "512", Paper: "16384", Check: bench.IntRange(128, 1<<24),
				Help: "most MiB of the mixture blogbench, at 10.4 MiB a blog; if the time allows more blogs, the oldest are replaced",
			},
			bench.OnParam(bench.Bind, bench.Bind),
		},
	}, blogSpace, func(ctx context.Context, t bench.Trial, files storage) (workload.Values, error) {
		// The seed is the same in every trial, so that all targets get the same files.
		load := probe.PaperFilesLoad(bench.DataDir, 1)
		if t.Param("mixture") == blogbenchMixture {
			load.BlogbenchMiB = t.Int("space")
		}
		values, err := bench.Measure(ctx, t, bench.InContainer, probe.Files(load, t.Duration("duration")), files.Into)
		if err != nil {
			return nil, err
		}
		if limit := probe.BlogbenchBlogs(load.BlogbenchMiB); limit > 0 && int(values["BlogsWritten"]) > limit {
			t.Condition("blogs", fmt.Sprintf("more than the %d that fit into the space were written: the oldest were replaced", limit))
		}
		return values, nil
	})
}
