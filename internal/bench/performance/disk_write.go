package performance

import (
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

func diskWrite() bench.Benchmark {
	return fileBenchmark(bench.Benchmark{
		Name:    "performance.disk.write",
		Summary: "writing files with sysbench fileio, a fixed amount of work",
		Source:  "espe figure 4b and table 1; nishimura tables 3 and 4",
		Metrics: []result.Metric{
			bench.Seconds("SeqWrite", "time to write all new files from beginning to end, in blocks of 16 KiB, with the sync at the end (espe: FileSeqWrite)"),
			bench.Seconds("SeqRewrite", "time to write all existing files in the same way (espe: FileSeqRewrite)"),
			bench.Seconds("RndWrite", "time of the random writes of 16 KiB, with the sync at the end (espe: FileRndWrite)"),
		},
		Params: fileParams("8", requestsParam(), fsyncParam(), bench.OnParam(bench.Bind, bench.Rootfs)),
	}, func(f workload.FileIO) []stage {
		return []stage{
			{Program: f.Run(workload.SeqWrite, "SeqWrite")},
			{Program: f.Run(workload.SeqRewrite, "SeqRewrite")},
			{Program: f.Run(workload.RndWrite, "RndWrite")},
		}
	})
}
