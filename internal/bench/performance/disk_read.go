package performance

import (
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func diskRead() bench.Benchmark {
	return fileBenchmark(bench.Benchmark{
		Name:    "performance.disk.read",
		Summary: "reading files with sysbench fileio, a fixed amount of work",
		Source:  "espe figure 4a and table 1; nishimura tables 3 and 4",
		Metrics: []result.Metric{
			bench.Seconds("SeqRead", "time to read all files from beginning to end, in blocks of 16 KiB (espe: FileSeqRead)"),
			bench.Seconds("RndRead", "time of the random reads of 16 KiB (espe: FileRndRead)"),
		},
		Params: fileParams("8", requestsParam(), bench.OnParam(bench.Bind, bench.Rootfs), bench.CacheParam(bench.Warm, bench.Warm)),
	}, func(_ bench.Params, f programs.FileIO) []stage {
		return []stage{
			{Program: f.Prepare()},
			{Program: f.Run(programs.SeqRead, "SeqRead"), reads: true},
			{Program: f.Run(programs.RndRead, "RndRead"), reads: true},
		}
	})
}
