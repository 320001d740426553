package performance

import (
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func diskWrite() bench.Benchmark {
	return fileBenchmark(bench.Benchmark{
		Name:    "performance.disk.write",
		Summary: "writing files with sysbench fileio, a fixed amount of work",
		Source:  "espe figure 4b and table 1; nishimura tables 3 and 4",
		Metrics: []result.Metric{
			bench.Seconds("SeqWrite", "time to write all new files from beginning to end, in blocks of 16 KiB, with the syncs (espe: FileSeqWrite)"),
			bench.Seconds("SeqRewrite", "time to write all existing files in the same way (espe: FileSeqRewrite)"),
			bench.Seconds("RndWrite", "time of the random writes of 16 KiB to existing files, with the syncs (espe: FileRndWrite)"),
		},
		Params: fileParams("8", requestsParam(), fsyncParam(syncRandom+"100", true), existingParam(), bench.OnParam(bench.Bind, bench.Rootfs)),
	}, func(p bench.Params, f programs.FileIO) []stage {
		stages := []stage{{Program: f.Run(programs.SeqWrite, "SeqWrite")}}
		for _, next := range []workload.Program{f.Run(programs.SeqRewrite, "SeqRewrite"), f.Run(programs.RndWrite, "RndWrite")} {
			if p.Param("existing") == emptyFiles {
				for _, empty := range f.Empty() {
					stages = append(stages, stage{Program: empty})
				}
			}
			stages = append(stages, stage{Program: next})
		}
		return stages
	})
}
