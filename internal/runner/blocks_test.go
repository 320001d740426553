package runner_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// silent ignores the progress of a run.
type silent struct{}

func (silent) Started(result.Trial, runner.Progress) {}

func (silent) Ended(result.Trial) {}

// manyBlocks is a run whose stop rule checks the precision and never stops before the last block.
func manyBlocks(t testing.TB, blocks int) *harness {
	const metrics = 5
	l := newHarness(t, "fake/a", "fake/b")
	l.config.Stop = stats.StopRule{Min: 10, Max: blocks, Precision: 1e-6}
	l.config.Observer = silent{}
	l.config.Record = func(result.Trial) error { return nil }
	random := rand.New(rand.NewPCG(1, 2))
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		if err := live(ctx, t); err != nil {
			return err
		}
		for m := range metrics {
			t.Record(fmt.Sprint("Value", m), math.Exp(random.NormFloat64()))
		}
		return nil
	})
	for m := range metrics {
		l.config.Work[0].Benchmark.Metrics = append(l.config.Work[0].Benchmark.Metrics, result.Metric{Name: fmt.Sprint("Value", m)})
	}
	return l
}

// The memory that a run takes for one block does not grow with the number of blocks: the stop rule keeps values, and reads each trial once. A copy
// of all trials at each check would be one allocation, and most of the bytes.
//
// Invariant constant-work: The work of the runner for one block does not grow with the number of blocks.
func TestBlocksDoNotGrowWithTheirNumber(t *testing.T) {
	perBlock := func(blocks int) float64 {
		l := manyBlocks(t, blocks)
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		out := l.ok()
		runtime.ReadMemStats(&end)
		if out.Counts[result.OK] != 2*blocks {
			t.Fatalf("%d trials, want %d", out.Counts[result.OK], 2*blocks)
		}
		return float64(end.TotalAlloc-start.TotalAlloc) / float64(blocks)
	}
	smallRun, largeRun := perBlock(100), perBlock(1000)
	t.Logf("a block of 100 takes %.0f bytes, and of 1000 %.0f", smallRun, largeRun)
	if largeRun > 1.1*smallRun {
		t.Errorf("a block of 1000 takes %.0f bytes, a block of 100 takes %.0f", largeRun, smallRun)
	}
}

func BenchmarkBlocks(b *testing.B) {
	for _, blocks := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint("blocks=", blocks), func(b *testing.B) {
			for b.Loop() {
				manyBlocks(b, blocks).ok()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*blocks), "µs/block")
		})
	}
}
