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
			pods, failure, err := launchAll(ctx, t, t.Int("pods"))
			if err != nil {
				return err
			}
			if failure != nil {
				t.Condition("a failed pod", failure.Error())
			}
			begin, end := pods[0].StartSpan.Start, time.Duration(0)
			for _, p := range pods {
				begin, end = min(begin, p.StartSpan.Start), max(end, p.first)
			}
			record(t, "Slowest", begin, end)
			t.Record("Rate", float64(len(pods))/(end-begin).Seconds())
			t.Record("Share", float64(len(pods))/float64(t.Int("pods")))
			return removeAll(ctx, t, pods)
		},
	}
}

// launchAll starts n pods at once. It returns the pods that work, and the first error of those that the cluster has not started.
func launchAll(ctx context.Context, t bench.Trial, n int) (pods []*pod, failure error, err error) {
	launched, errs := make([]*pod, n), make([]error, n)
	var launches sync.WaitGroup
	for i := range n {
		launches.Go(func() { launched[i], errs[i] = launch(ctx, t, idle(t)) })
	}
	launches.Wait()
	for i, p := range launched {
		switch {
		case p != nil:
			pods = append(pods, p)
		case ctx.Err() != nil || !notStarted(errs[i]):
			return nil, nil, errs[i]
		case failure == nil:
			failure = errs[i]
		}
	}
	if len(pods) == 0 {
		return nil, nil, failure
	}
	return pods, failure, nil
}

// removeAll removes pods at once. A pod takes a second and more, so the runner would need minutes for many.
func removeAll(ctx context.Context, t bench.Trial, pods []*pod) error {
	errs := make([]error, len(pods))
	var removals sync.WaitGroup
	for i, p := range pods {
		removals.Go(func() { _, errs[i] = p.Remove(ctx, t) })
	}
	removals.Wait()
	return errors.Join(errs...)
}
