package performance

import (
	"errors"

	"github.com/touchstone-bench/touchstone/internal/bench"
)

// cpu lists the benchmarks of how fast programs compute.
func cpu() []bench.Benchmark {
	return []bench.Benchmark{cpuTime(), sevenZip(), dav1d(), linpack()}
}

// allThreads asks for as many threads as the program sees CPUs.
const allThreads = "all"

// threadsParam is the parameter for how many threads work at once.
func threadsParam(paper, help string) bench.Param {
	number := bench.IntRange(1, 256)
	return bench.Param{
		Name: "threads", Help: help, Quick: "1", Paper: paper,
		Check: func(v string) error {
			if v == allThreads {
				return nil
			}
			if err := number(v); err != nil {
				return errors.New(err.Error() + ", or " + allThreads)
			}
			return nil
		},
	}
}

// threads reads the parameter; 0 is all.
func threads(t bench.Trial) (n int, err error) {
	if t.Param("threads") != allThreads {
		err = bench.Numbers(t, map[string]*int{"threads": &n})
	}
	return n, err
}
