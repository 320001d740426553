package performance

import (
	"errors"
	"runtime"

	"github.com/touchstone-bench/touchstone/internal/bench"
)

// allThreads stands for one thread for each CPU that the program sees.
const allThreads = "all"

// threadsParam is the parameter for the number of threads that work at once.
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

// threads reads the parameter; 0 stands for all.
func threads(t bench.Trial) int {
	if t.Param("threads") == allThreads {
		return 0
	}
	return t.Int("threads")
}

// mostThreads is the highest number of threads that a program starts on this machine.
func mostThreads(p bench.Params) int {
	if p.Param("threads") == allThreads {
		return runtime.NumCPU()
	}
	return p.Int("threads")
}
