package pods

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// largest bounds the number of pods of one trial. A kubelet holds 110 unless its configuration has another number.
const largest = 1000

func rate() bench.Benchmark {
	share := bench.Higher("Share", result.Ratio, "pods that have run their first instruction, of all")
	share.AnySpeed = true
	throughput := bench.Higher("Rate", result.PerSecond, "pods that have run their first instruction, over the time from the first request to the last first instruction")
	throughput.Phrase = "starts pods at a rate of"
	return bench.Benchmark{
		Name:    "pods.rate",
		Summary: "many pods at once on one node: how many start, and how fast",
		Source:  "peers (ClusterLoader2, density of Kubernetes)",
		Metrics: []result.Metric{
			throughput, share,
			bench.Seconds("Slowest", "from the first request to the last first instruction"),
		},
		Params: []bench.Param{{
			Name: "pods", Help: "number of pods that are created at once", Quick: "5", Paper: "30", Check: bench.IntRange(2, largest),
		}},
		Needs: func(p bench.Params) bench.Needs { return bench.Needs{Containers: p.Int("pods")} },
		Run: func(ctx context.Context, t bench.Trial) error {
			pods, err := launchAll(ctx, t, t.Int("pods"))
			if len(pods) == 0 {
				return err
			}
			if err != nil {
				t.Condition("a failed pod", err.Error())
			}
			begin, end := pods[0].StartSpan.Start, time.Duration(0)
			for _, p := range pods {
				begin, end = min(begin, p.StartSpan.Start), max(end, p.first)
			}
			if err := record(t, "Slowest", begin, end); err != nil {
				return err
			}
			t.Record("Rate", float64(len(pods))/(end-begin).Seconds())
			t.Record("Share", float64(len(pods))/float64(t.Int("pods")))
			return removeAll(t, pods)
		},
	}
}

// launchAll starts n pods at once. It returns the pods that work, and the first error of the others. An error of the whole target has no pods.
func launchAll(ctx context.Context, t bench.Trial, n int) ([]*pod, error) {
	launched, errs := make([]*pod, n), make([]error, n)
	var launches sync.WaitGroup
	for i := range n {
		launches.Go(func() { launched[i], errs[i] = launch(ctx, t) })
	}
	launches.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var pods []*pod
	var first error
	for i, p := range launched {
		if p != nil {
			pods = append(pods, p)
		} else if first == nil {
			first = errs[i]
		}
	}
	return pods, first
}

// removeAll removes pods at once. A pod takes a second and more, so the runner would need minutes for many.
func removeAll(t bench.Trial, pods []*pod) error {
	errs := make([]error, len(pods))
	var removals sync.WaitGroup
	for i, p := range pods {
		removals.Go(func() { _, errs[i] = p.Remove(p.ctx, t) })
	}
	removals.Wait()
	return errors.Join(errs...)
}
