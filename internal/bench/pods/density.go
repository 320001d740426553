package pods

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// A start is too slow if it takes more than slowdown times the median of the first pods, whose number is calm. Then the node holds no more pods:
// a probe of readiness with usual limits would fail.
const (
	calm     = 5
	slowdown = 10
)

func density() bench.Benchmark {
	count := bench.Higher("Pods", result.Count, "pods that run at the same time until one does not start, starts too late, or the node has too little memory; at most the parameter")
	count.Phrase, count.Dimension, count.Column = "runs on this node with a number of pods of", result.DimensionDensity, result.ColumnDensity
	memory := result.Metric{
		Name: "Memory", Unit: result.Bytes, Better: result.Lower, Optional: true, Consumed: true,
		Help:      "fall of the node's MemAvailable by one more pod: the slope over all pods, with all memory of the node that a pod takes",
		Dimension: result.DimensionMemoryOverhead, Phrase: "takes for one more pod",
	}
	end := func(name, help string) result.Metric {
		return result.Metric{
			Name: name, Unit: result.Bytes, Better: result.Lower, Optional: true, Consumed: true, DerivedFrom: memory.Name, Help: help,
		}
	}
	return bench.Benchmark{
		Name:    "pods.density",
		Summary: "number of pods that a node holds, and the memory of one",
		Source:  "wang section 5.7 (cost of isolation in density), for pods; peers (density of Kubernetes)",
		Metrics: []result.Metric{
			count, memory,
			end("MemoryLow", "lower end of the 95 % interval of Memory in one trial"),
			end("MemoryHigh", "upper end of the 95 % interval of Memory in one trial"),
			bench.Seconds("Slowest", "the longest start of a pod, from the request to the first instruction"),
		},
		Params: []bench.Param{
			{Name: "max", Help: "the largest number of pods; the kubelet's own limit is 110 as default", Quick: "10", Paper: "100", Check: bench.IntRange(2, largest)},
			{Name: "floor", Help: "the available memory of the node in per cent that ends the trial, so that the node is never exhausted", Quick: "20", Paper: "10", Check: bench.IntRange(6, 90)},
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			c, err := fill(ctx, t)
			if err != nil {
				return err
			}
			t.Condition("stopped by", c.end)
			t.Record("Pods", float64(len(c.pods)))
			t.Record("Slowest", slices.Max(c.starts).Seconds())
			c.recordMemory(t)
			return removeAll(ctx, t, c.pods)
		},
	}
}

// crowd is the pods of a trial, with their starts and the available memory of the node after 0, 1, 2, … pods.
type crowd struct {
	pods      []*pod
	starts    []time.Duration
	available []float64
	end       string // the reason
}

// fill starts pods until the end.
func fill(ctx context.Context, t bench.Trial) (*crowd, error) {
	c := &crowd{}
	for {
		node, err := t.Cost.Host()
		if err != nil {
			return nil, err
		}
		c.available = append(c.available, float64(node["MemAvailable"]))
		if c.end = c.stop(t, float64(node["MemTotal"])); c.end != "" {
			break
		}
		p, err := launch(ctx, t, idle(t))
		if err != nil && (len(c.pods) == 0 || ctx.Err() != nil || !notStarted(err)) {
			return nil, err
		}
		if err != nil {
			c.end = fmt.Sprintf("pod %d: %v", len(c.pods)+1, err)
			break
		}
		c.pods, c.starts = append(c.pods, p), append(c.starts, p.first-p.StartSpan.Start)
	}
	if len(c.pods) == 0 {
		return nil, fmt.Errorf("the node has less available memory than the floor of %s %%: free memory, or set a lower floor", t.Param("floor"))
	}
	return c, nil
}

// stop returns the reason why no further pod starts; empty if one may.
func (c *crowd) stop(t bench.Trial, total float64) string {
	n := len(c.pods)
	switch {
	case c.available[len(c.available)-1] < total*float64(t.Int("floor"))/100:
		return "memory"
	case n == t.Int("max"):
		return "the parameter max"
	case n > calm && c.starts[n-1] > slowdown*middle(c.starts[:calm]):
		return fmt.Sprintf("the start of pod %d, which took %v", n, c.starts[n-1].Round(time.Millisecond))
	}
	return ""
}

func middle(times []time.Duration) time.Duration {
	times = slices.Sorted(slices.Values(times))
	return times[len(times)/2]
}

// recordMemory records the memory of one more pod. The first pod also pays for the pages that all share, so the line begins at it.
func (c *crowd) recordMemory(t bench.Trial) {
	var places, falls []float64
	for n := 1; n < len(c.available) && n <= len(c.pods); n++ {
		places, falls = append(places, float64(n)), append(falls, c.available[0]-c.available[n])
	}
	if len(places) < 2 {
		return
	}
	line := stats.CumulativeLine(places, falls)
	if !(line.Slope > 0) {
		t.Condition("memory of a pod", "lost in the noise of the node: set a larger max, or keep other pods away")
		return
	}
	t.Record("Memory", line.Slope)
	if line.CI != nil && line.CI.Lo > 0 {
		t.Record("MemoryLow", line.CI.Lo)
		t.Record("MemoryHigh", line.CI.Hi)
	}
}
