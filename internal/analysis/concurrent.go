package analysis

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// concurrently calls do with 0, 1, …, n − 1, on all CPUs. It returns when all calls have returned.
func concurrently(n int, do func(i int)) {
	var calls errgroup.Group
	calls.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		calls.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = calls.Wait() // no call returns an error
}
