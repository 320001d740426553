// Package scalability is the suite of the behaviour of engines under a growing number of containers.
package scalability

import (
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// largest bounds the number of containers of one trial: beyond it hosts run out of processes and pipes before a runtime
// reaches its limits. The runner skips numbers that do not fit on the host.
const largest = 10_000

// needs are the needs of a number of containers whose calls are timed.
func needs(containers int) bench.Needs {
	return bench.Needs{Capabilities: []engine.Capability{engine.DirectCalls}, Containers: containers}
}

// Benchmarks lists the sizes of the paper, and the rates.
func Benchmarks() []bench.Benchmark {
	return []bench.Benchmark{runtime(5), runtime(10), runtime(50), rate(1), rate(4), rate(8)}
}

// Lookup returns the benchmark for any size: scalability.runtime.N and scalability.rate.N.
func Lookup(name string) (bench.Benchmark, bool) {
	for _, family := range []struct {
		prefix string
		most   int
		of     func(int) bench.Benchmark
	}{{prefix, largest, runtime}, {ratePrefix, mostWorkers, rate}} {
		text, ok := strings.CutPrefix(name, family.prefix)
		n, err := strconv.Atoi(text)
		if ok && err == nil && n >= 1 && n <= family.most && strconv.Itoa(n) == text {
			return family.of(n), true
		}
	}
	return bench.Benchmark{}, false
}
