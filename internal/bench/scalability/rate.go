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
	"github.com/touchstone-bench/touchstone/internal/workload"
)

const ratePrefix = "scalability.rate."

// mostWorkers bounds the workers of one trial: far more than an engine does at a time.
const mostWorkers = 256

func rate(workers int) bench.Benchmark {
	return bench.Benchmark{
		Name:    ratePrefix + strconv.Itoa(workers),
		Summary: fmt.Sprintf("whole lives of containers by %d workers at once: create, start, wait for the program's end, delete", workers),
		Source:  "peers (containerd-stress, bucketbench)",
		Metrics: []result.Metric{{
			Name: "Rate", Unit: result.PerSecond, Better: result.Higher,
			Help: "lives a second, all workers together, from before the first create to the end of the last delete",
		}},
		Params: []bench.Param{{
			Name: "lives", Help: "lives in a trial, all workers together", Quick: "16", Paper: "200",
			Check: bench.IntRange(1, largest),
		}},
		Run: func(ctx context.Context, t bench.Trial) error {
			var lives int
			if err := bench.Numbers(t, map[string]*int{"lives": &lives}); err != nil {
				return err
			}
			return drive(ctx, t, workers, lives)
		},
	}
}

// drive shares the lives among the workers: who is done takes the next one.
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
					next.Store(int64(lives)) // the trial has failed: nobody begins another one
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	whole := spans[0]
	for _, s := range spans {
		whole.Start, whole.End = min(whole.Start, s.Start), max(whole.End, s.End)
	}
	t.Record("Rate", float64(lives)/whole.Seconds())
	return nil
}

// life is one container from its creation to its deletion. Its program ends by itself at once.
func life(ctx context.Context, t bench.Trial) (bench.Span, error) {
	out := t.Watch()
	spec := t.Spec(workload.Exit(0)...)
	spec.Process.Stdout = out
	c, create, err := t.Create(ctx, spec)
	if err != nil {
		return bench.Span{}, err
	}
	if _, err := t.Time(ctx, "start", c.Start); err != nil {
		return bench.Span{}, err
	}
	exit, err := c.Wait(ctx)
	if err == nil && !exit.OK() {
		err = fmt.Errorf("the program ended: %v", exit)
	}
	if err != nil {
		return bench.Span{}, err
	}
	remove, err := t.Time(ctx, "delete", c.Delete)
	if said := out.Bytes(); err == nil && len(said) > 0 {
		err = fmt.Errorf("the program, which has nothing to say, wrote %.100q", said)
	}
	return bench.Span{Start: create.Start, End: remove.End}, err
}
