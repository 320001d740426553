package performance

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

func diskThroughput() bench.Benchmark {
	metrics := []result.Metric{
		higher("SeqWrite", result.BytesPerSecond, "writing the file anew from beginning to end, with the sync at the end"),
		higher("SeqRead", result.BytesPerSecond, "reading the file from beginning to end; with a warm cache again and again"),
		higher("RndRead", result.PerSecond, "reads at random positions"),
		higher("RndWrite", result.PerSecond, "writes at random positions, with the sync at the end"),
	}
	return bench.Benchmark{
		Name:    "performance.disk.throughput",
		Summary: "sequential and random throughput of one file with fio, one request at a time",
		Source:  "wang section 5.3 and figures 10 and 11 (IOzone: 16 GB, flushed and dropped from the cache before)",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Disk},
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "mib", Help: "size of the file in MiB", Quick: "128", Paper: "16384", Check: bench.IntRange(1, 1<<24)},
			{Name: "block", Help: "size of a sequential request in KiB", Quick: "128", Paper: "128", Check: bench.IntRange(4, 65_536)},
			{Name: "rndblock", Help: "size of a random request in KiB", Quick: "4", Paper: "4", Check: bench.IntRange(4, 65_536)},
			duration(300*time.Millisecond, 30*time.Second, "how long the random requests go on at most, and reading again and again"),
			bench.OnParam(bench.Bind, bench.Bind),
			bench.CacheParam(bench.Warm, bench.Cold),
			{Name: "direct", Help: "1 passes by the page cache (O_DIRECT), where that is honoured", Quick: "0", Paper: "0", Check: bench.OneOf("0", "1")},
		},
		Space: func(p bench.Params) bench.Space {
			var mib int
			if bench.Numbers(p, map[string]*int{"mib": &mib}) != nil {
				return bench.Space{} // Resolve refuses it
			}
			return spaceOf(p, int64(mib)<<20)
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			f := workload.Fio{Dir: bench.DataDir, Direct: t.Param("direct") == "1"}
			var block, rndBlock int
			d, err := settings(t, map[string]*int{"mib": &f.MiB, "block": &block, "rndblock": &rndBlock})
			if err != nil {
				return err
			}
			if block, rndBlock = block<<10, rndBlock<<10; block > f.MiB<<20 || rndBlock > f.MiB<<20 {
				return fmt.Errorf("requests of %d and %d bytes do not fit into a file of %d MiB", block, rndBlock, f.MiB)
			}
			on, err := storageOf(t, bench.Cache(t.Param("cache")))
			if err != nil {
				return err
			}
			if f.Direct && !on.OnDisk() {
				return &engine.UnsupportedError{What: "direct I/O", Reason: "files on " + string(on.Volume) + " are nowhere but in memory", Advice: "measure with direct=0"}
			}
			// Again and again a file would be read from the cache after the first time.
			again := on.cache == bench.Warm
			sequential := workload.FioRun{Mode: workload.FioRead, Metric: "SeqRead", Unit: workload.BytesPerSecond, Block: block, Again: again}
			if again {
				sequential.For = d
			}
			values, err := on.measure(ctx, t, on.runs(f,
				workload.FioRun{Mode: workload.FioWrite, Metric: "SeqWrite", Unit: workload.BytesPerSecond, Block: block},
				sequential,
				workload.FioRun{Mode: workload.FioRandRead, Metric: "RndRead", Unit: workload.PerSecond, Block: rndBlock, For: d, Again: again},
				workload.FioRun{Mode: workload.FioRandWrite, Metric: "RndWrite", Unit: workload.PerSecond, Block: rndBlock, For: d, Again: true},
			)...)
			if err != nil {
				return err
			}
			on.recordCache(t)
			if f.Direct {
				if err := on.checkDirect(t, workload.FioFile); err != nil {
					return err
				}
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}

// runs gives fio's runs to as many calls of it as the page cache asks for: it takes a while to start.
func (s storage) runs(f workload.Fio, runs ...workload.FioRun) []stage {
	if s.cache == bench.Warm {
		return []stage{{Step: f.Run(runs...)}}
	}
	var stages []stage
	for _, r := range runs {
		stages = append(stages, stage{Step: f.Run(r), reads: r.Mode == workload.FioRead || r.Mode == workload.FioRandRead})
	}
	return stages
}

// checkDirect tells whether a file was read and written past the host's page cache, as was asked. gVisor takes O_DIRECT
// without a word and then uses the cache, which makes it many times as fast as bare metal: that is no result. What the
// host cannot see is put on record as not known.
func (s storage) checkDirect(t bench.Trial, file string) error {
	const name = "direct I/O"
	if s.Dir == "" {
		t.Condition(name, "asked for; whether it is honoured cannot be seen on "+string(s.Volume))
		return nil
	}
	cached, size, err := cachedBytes(filepath.Join(s.Dir, file))
	if err != nil {
		return err
	}
	if inCache(cached, size) {
		return &engine.UnsupportedError{
			What:   name,
			Reason: fmt.Sprintf("the target ignores it (O_DIRECT): %d of %d bytes of the file lie in the host's page cache", cached, size),
			Advice: "measure with direct=0",
		}
	}
	t.Condition(name, "honoured: the file is not in the host's page cache")
	return nil
}
