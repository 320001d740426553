package performance

import (
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func memoryTotal() bench.Benchmark {
	return sysbenchMemory(
		"total", "writing memory with sysbench, a fixed amount of work", "espe figure 2a, table 1 (MemTime); nishimura section 4.4, tables 3 and 4", "4096", "102400",
		bench.Headed(result.ColumnMemorySpeed, bench.Scored(result.DimensionMemorySpeed, bench.Seconds("TotalTime", "time until all blocks are written, with the cost of the first access to each page"))),
	)
}
