package performance

import "github.com/touchstone-bench/touchstone/internal/bench"

func memoryMinAvgLatency() bench.Benchmark {
	return sysbenchMemory(
		"minavglatency", "minimum and mean latency of writing single blocks of memory with sysbench", "espe figure 2b, table 1 (MemMinLatency, MemAvgLatency)", "1024", "1024",
		bench.Seconds("MinLatency", "time of the fastest block, from sysbench's histogram, with an error of up to 1 % and 0.5 µs"),
		bench.Seconds("AvgLatency", "mean time of a block"),
	)
}
