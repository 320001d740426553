package performance

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// fileBenchmark completes a benchmark that runs modes of sysbench's fileio.
func fileBenchmark(b bench.Benchmark, stages func(f workload.FileIO) []stage) bench.Benchmark {
	b.Image = bench.WorkloadImage
	return onStorage(b, fileBytes, func(ctx context.Context, t bench.Trial, on storage) (workload.Values, error) {
		values, err := on.measure(ctx, t, stages(fileIO(t))...)
		if err == nil && t.Has("cache") {
			on.recordCache(t)
		}
		return values, err
	})
}

// fileParams are the parameters for the files of sysbench's fileio; mib is the quick size of each file.
func fileParams(mib string, more ...bench.Param) []bench.Param {
	return append([]bench.Param{
		{Name: "files", Help: "number of files", Quick: "16", Paper: "128", Check: bench.IntRange(1, 10_000)},
		{Name: "mib", Help: "size of each file in MiB", Quick: mib, Paper: "16", Check: bench.IntRange(1, 1<<20)},
	}, more...)
}

// requestsParam is the parameter for the number of requests of a random mode.
func requestsParam() bench.Param {
	return bench.Param{
		Name: "requests", Help: "number of requests at random positions; sequential modes pass through all files once",
		Quick: "10000", Paper: "10000", Check: bench.IntRange(100, 100_000_000),
	}
}

// fsyncParam is the parameter for the interval of syncs.
func fsyncParam() bench.Param {
	return bench.Param{
		Name: "fsync", Help: "number of writes between two syncs of all files; 0 syncs only once, at the end",
		Quick: "0", Paper: "100", Check: bench.IntRange(0, 1_000_000),
	}
}

// fileIO reads the parameters of the functions above, as far as the benchmark has them.
func fileIO(t bench.Trial) workload.FileIO {
	f := workload.FileIO{Files: t.Int("files"), MiB: t.Int("mib")}
	if t.Has("requests") {
		f.Requests = t.Int("requests")
	}
	if t.Has("fsync") {
		f.SyncEvery = t.Int("fsync")
	}
	return f
}

// fileBytes is the size of all files together.
func fileBytes(p bench.Params) int64 { return int64(p.Int("files")) * int64(p.Int("mib")) << 20 }
