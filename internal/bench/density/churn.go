package density

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The headings of the parts of memory that is not returned.
const (
	keptByComponent = "Memory not returned by component"
	keptByKind      = "Memory not returned outside the PSS"
)

// settle is the time for the kernel to free cgroups and network namespaces after the last container. It frees them in the background.
const settle = 500 * time.Millisecond

func churn() bench.Benchmark {
	const exclusion = ", without the anonymous memory of other processes"
	peak := bytesOf("PeakMemory", "fall of MemAvailable while all containers run"+exclusion)
	peak.Phrase = "takes at the peak of all containers"
	remainder := bytesOf("NotReturned", "fall of MemAvailable that remains after all containers are removed"+exclusion)
	remainder.Phrase = "keeps after the removal of its containers"
	return bench.Benchmark{
		Name:    "density.churn",
		Summary: "the host's memory while containers are created and removed, and memory that is not returned",
		Source:  "nishimura figure 5",
		Metrics: slices.Concat([]result.Metric{
			peak, remainder,
			bytesOf("PeakFall", "fall of MemAvailable while all containers run"),
			bytesOf("FallNotReturned", "fall of MemAvailable that remains after all containers are removed"),
			bytesOf("PeakPSS", "growth of the PSS of the target while all containers run"),
			bytesOf("PSSNotReturned", "growth of the PSS of the target that remains after all containers are removed, mostly the daemon's"),
			bytesOf("PeakSwap", "growth of the used swap while all containers run; absent without swap"),
			bench.Seconds("CreateTime", "from before the first create to the first byte of the last container, without the readings of memory"),
			bench.Seconds("RemoveTime", "from before the first kill to the end of the last delete"),
		}, componentMetrics("NotReturned", keptByComponent, "growth of the PSS that remains: "), restMetrics("RestNotReturned", keptByKind)),
		Components: true,
		Monitor:    true,
		Params:     []bench.Param{containersParam("10", "50")},
		Needs: func(p bench.Params) bench.Needs {
			return bench.Needs{Capabilities: []engine.Capability{engine.DirectCalls}, Containers: p.Int("containers")}
		},
		Run: runChurn,
	}.Monitored()
}

func runChurn(ctx context.Context, t bench.Trial) error {
	n := t.Int("containers")
	baseline, err := read(t)
	if err != nil {
		return err
	}
	var running []*bench.Running
	creation := bench.Span{}
	for i := range n {
		c, err := bench.Launch(ctx, t, t.Spec(probe.Ready()...))
		if err != nil {
			return fmt.Errorf("container %d of %d: %w", i+1, n, err)
		}
		first, err := c.Ready(ctx)
		if err != nil {
			return fmt.Errorf("container %d of %d: %w", i+1, n, err)
		}
		if i == 0 {
			creation.Start = c.CreateSpan.Start
		}
		creation.End = max(first, c.StartSpan.End)
		running = append(running, c)
	}
	peak, err := read(t)
	if err != nil {
		return err
	}
	if err := alive(ctx, t, running); err != nil {
		return err
	}
	removal := bench.Span{}
	for i, c := range running {
		_, span, err := c.Destroy(ctx, t)
		if err != nil {
			return fmt.Errorf("remove container %d of %d: %w", i+1, n, err)
		}
		if i == 0 {
			removal.Start = span.Start
		}
		removal.End = span.End
	}
	if _, err := t.Sleep(ctx, settle); err != nil {
		return err
	}
	remainder, err := read(t)
	if err != nil {
		return err
	}
	t.Record("CreateTime", creation.Seconds())
	t.Record("RemoveTime", removal.Seconds())
	recordChurn(t, baseline, peak, remainder)
	return nil
}

func recordChurn(t bench.Trial, baseline, peak, remainder reading) {
	ends := readings{baseline, remainder}
	census, available := readings{baseline, peak, remainder}.known()
	last := func(values []float64) float64 { return values[len(values)-1] }
	pss := func(r reading) int64 { return r.pss().PSS }
	if available {
		t.Record("PeakFall", last(readings{baseline, peak}.fall()))
		t.Record("FallNotReturned", last(ends.fall()))
		if baseline.host["SwapTotal"] > 0 {
			t.Record("PeakSwap", last(readings{baseline, peak}.growth(func(r reading) int64 { return r.host["SwapTotal"] - r.host["SwapFree"] })))
		}
	}
	if census {
		t.Record("PeakPSS", last(readings{baseline, peak}.growth(pss)))
		t.Record("PSSNotReturned", last(ends.growth(pss)))
		for _, c := range ends.components() {
			t.Record("NotReturned"+bench.Title(string(c)), last(ends.growth(func(r reading) int64 { return r.census.Memory[c].PSS })))
		}
	}
	if census && available && (readings{baseline, peak}).divided() {
		t.Record("PeakMemory", last(readings{baseline, peak}.cost()))
		t.Record("NotReturned", last(ends.cost()))
		ends.explain(last, func(component string, value float64) { t.Record("RestNotReturned"+bench.Title(component), value) })
	}
}
