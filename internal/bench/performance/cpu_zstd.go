package performance

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func zstd() bench.Benchmark {
	return ofProgram(bench.Benchmark{
		Name:    "performance.cpu.zstd",
		Summary: "compressing and decompressing a text in memory with zstd's benchmark, in one thread",
		Source:  "peers (lzbench, the Phoronix Test Suite's compress-zstd)",
		Metrics: []result.Metric{
			bench.Scored(result.DimensionCPU, bench.Higher("Compression", result.BytesPerSecond, "bytes of the text compressed per second, in the fastest run of about a second")),
			bench.Scored(result.DimensionCPU, bench.Higher("Decompression", result.BytesPerSecond, "bytes of the text restored per second, in the fastest run of about a second")),
		},
		Params: []bench.Param{
			{Name: "level", Help: "compression level; a higher level compresses better and takes longer", Quick: "3", Paper: "3", Check: bench.IntRange(1, 19)},
			{Name: "seconds", Help: "minimum time of each direction; zstd's own value is 3", Quick: "1", Paper: "3", Check: bench.IntRange(1, 3600)},
		},
	}, func(t bench.Trial) workload.Program {
		return programs.Zstd(t.Int("level"), time.Duration(t.Int("seconds"))*time.Second)
	})
}
