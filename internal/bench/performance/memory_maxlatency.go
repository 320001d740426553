package performance

import "github.com/touchstone-bench/touchstone/internal/bench"

func memoryMaxLatency() bench.Benchmark {
	return sysbenchMemory(
		"maxlatency", "maximum latency of writing single blocks of memory with sysbench", "espe figure 2c, table 1 (MemMaxLatency)", "1024", "1024",
		bench.Seconds("MaxLatency", "time of the slowest block, in steps of 10 µs; it reflects preemption of the program as much as memory"),
	)
}
