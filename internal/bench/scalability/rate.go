package scalability

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

const ratePrefix = "scalability.rate."

// mostWorkers bounds the workers of one trial, far above the parallelism of any engine.
const mostWorkers = 256

func rate(workers int) bench.Benchmark {
	return bench.Benchmark{
		Name:    ratePrefix + strconv.Itoa(workers),
		Summary: fmt.Sprintf("complete lifecycles of containers by %d workers at once: create, start, wait for the exit, delete", workers),
		Source:  "peers (containerd-stress, bucketbench)",
		Metrics: []result.Metric{
			bench.Higher("Rate", result.PerSecond, "lifecycles per second of all workers together, from before the first create to the end of the last delete"),
		},
		Params: []bench.Param{{
			Name: "lives", Help: "lifecycles in a trial, all workers together", Quick: "16", Paper: "200",
			Check: bench.IntRange(1, largest),
		}},
		Needs: func(bench.Params) bench.Needs { return needs(workers) },
		Run: func(ctx context.Context, t bench.Trial) error {
			return drive(ctx, t, workers, t.Int("lives"))
		},
	}
}

// drive shares the lifecycles among the workers: an idle worker takes the next one.
func drive(ctx context.Context, t bench.Trial, workers, lives int) error {
	spans := make([]bench.Span, lives)
	errs := make([]error, workers)
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= lives {
					return
				}
				if spans[n], errs[w] = life(ctx, t); errs[w] != nil {
					next.Store(int64(lives)) // the trial has failed: no worker begins another lifecycle
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	total := spans[0]
	for _, s := range spans {
		total.Start, total.End = min(total.Start, s.Start), max(total.End, s.End)
	}
	t.Record("Rate", float64(lives)/total.Seconds())
	return nil
}

// life creates, starts and deletes one container, whose program exits at once.
func life(ctx context.Context, t bench.Trial) (bench.Span, error) {
	c, err := bench.Launch(ctx, t, t.Spec(probe.Exit(0)...))
	if err != nil {
		return bench.Span{}, err
	}
	if err := c.WaitOK(ctx); err != nil {
		return bench.Span{}, err
	}
	remove, err := c.Remove(ctx, t)
	if output := c.Output.Bytes(); err == nil && len(output) > 0 {
		err = fmt.Errorf("the program must write nothing and wrote %.100q", output)
	}
	return bench.Span{Start: c.CreateSpan.Start, End: remove.End}, err
}
