package performance

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// The sizes of the requests in a sweep, in KiB. The paper's are the sizes of IOzone's automatic mode.
const (
	noSweep     = "none"
	iozoneSweep = "4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384"
)

// Bounds of the sizes of requests in KiB.
const leastBlock, mostBlock = 4, 65_536

// sweepParam is the parameter for the sizes of a sweep.
func sweepParam() bench.Param {
	size := bench.IntRange(leastBlock, mostBlock)
	return bench.Param{
		Name: "sweep", Quick: noSweep, Paper: iozoneSweep,
		Help: "sizes of sequential requests in KiB, separated by commas, or none: the file is written over and read again with each",
		Check: func(v string) error {
			if v == noSweep {
				return nil
			}
			sizes := strings.Split(v, ",")
			for _, text := range sizes {
				if err := size(text); err != nil {
					return fmt.Errorf("%w, separated by commas, or %s: %q is not", err, noSweep, text)
				}
			}
			if len(sizes) > mostSweep {
				return fmt.Errorf("must have at most %d sizes", mostSweep)
			}
			return nil
		},
	}
}

// mostSweep bounds the time of a trial.
const mostSweep = 64

// sweepOf returns the sizes of the requests in a sweep, in bytes.
func sweepOf(p bench.Params) (sizes []int) {
	if p.Param("sweep") == noSweep {
		return nil
	}
	for text := range strings.SplitSeq(p.Param("sweep"), ",") {
		kib, err := strconv.Atoi(text)
		if err != nil {
			panic(fmt.Sprintf("the parameter sweep is not checked: %v", err))
		}
		sizes = append(sizes, kib<<10)
	}
	return sizes
}

// The series of a sweep. A value of the program has the name of its series and the number of the size.
const writeSweep, readSweep = "WriteSweep", "ReadSweep"

func inSweep(series string, i int) string { return series + strconv.Itoa(i) }

func diskThroughput() bench.Benchmark {
	series := func(name, help string) result.Metric {
		m := bench.Higher(name, result.BytesPerSecond, help+", with each size of sweep in its order")
		m.Series, m.Optional = true, true
		return m
	}
	return onStorage(bench.Benchmark{
		Name:    "performance.disk.throughput",
		Summary: "sequential and random throughput of one file with fio, one request at a time",
		Source:  "wang section 5.3 and figures 10 and 11 (IOzone: 16 GB, flushed and dropped from the cache before)",
		Metrics: []result.Metric{
			bench.Scored(result.DimensionDisk, bench.Higher("SeqWrite", result.BytesPerSecond, "writing the new file from beginning to end, with the sync at the end")),
			bench.Scored(result.DimensionDisk, bench.Higher("SeqRead", result.BytesPerSecond, "reading the file from beginning to end; with a warm cache repeatedly")),
			bench.Headed(result.ColumnDisk, bench.Scored(result.DimensionDisk, bench.Higher("RndRead", result.PerSecond, "reads at random positions"))),
			bench.Scored(result.DimensionDisk, bench.Higher("RndWrite", result.PerSecond, "writes at random positions, with the sync at the end")),
			series(writeSweep, "writing over the file from its beginning, with the sync at the end"),
			series(readSweep, "reading the file from its beginning"),
		},
		Place: "size of the requests, by its place in sweep",
		Image: bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "mib", Help: "size of the file in MiB", Quick: "128", Paper: "16384", Check: bench.IntRange(1, 1<<24)},
			{Name: "block", Help: "size of a sequential request in KiB", Quick: "128", Paper: "128", Check: bench.IntRange(leastBlock, mostBlock)},
			{Name: "rndblock", Help: "size of a random request in KiB", Quick: "4", Paper: "4", Check: bench.IntRange(leastBlock, mostBlock)},
			sweepParam(),
			duration(300*time.Millisecond, 30*time.Second, "run time limit of the random requests, of repeated reading, and of each part of the sweep"),
			bench.OnParam(bench.Bind, bench.Bind),
			bench.CacheParam(bench.Warm, bench.Cold),
			{Name: "direct", Help: "1 bypasses the page cache (O_DIRECT), if the target honours it", Quick: "0", Paper: "0", Check: bench.OneOf("0", "1")},
		},
	}, func(p bench.Params) int64 { return int64(p.Int("mib")) << 20 }, func(ctx context.Context, t bench.Trial, files storage) (workload.Values, error) {
		f := programs.Fio{Dir: bench.DataDir, MiB: t.Int("mib"), Direct: t.Param("direct") == "1"}
		d, block, rndBlock := t.Duration("duration"), t.Int("block")<<10, t.Int("rndblock")<<10
		if block > f.MiB<<20 || rndBlock > f.MiB<<20 {
			return nil, fmt.Errorf("requests of %d and %d bytes do not fit into a file of %d MiB", block, rndBlock, f.MiB)
		}
		if f.Direct && !files.OnDisk() {
			return nil, &engine.UnsupportedError{What: "direct I/O", Reason: "files on " + string(files.Volume) + " exist only in memory", Advice: "measure with direct=0"}
		}
		// With a cold cache the file is read once: a repetition would read it from the cache.
		repeat := files.cache == bench.Warm
		sequential := programs.FioRun{Mode: programs.FioRead, Metric: "SeqRead", Unit: workload.BytesPerSecond, Block: block, Again: repeat}
		if repeat {
			sequential.For = d
		}
		runs := []programs.FioRun{
			{Mode: programs.FioWrite, Metric: "SeqWrite", Unit: workload.BytesPerSecond, Block: block},
			sequential,
			{Mode: programs.FioRandRead, Metric: "RndRead", Unit: workload.PerSecond, Block: rndBlock, For: d, Again: repeat},
			{Mode: programs.FioRandWrite, Metric: "RndWrite", Unit: workload.PerSecond, Block: rndBlock, For: d, Again: true},
		}
		sweep := sweepOf(t.Params)
		for i, size := range sweep {
			if size > f.MiB<<20 {
				return nil, fmt.Errorf("requests of %d bytes do not fit into a file of %d MiB: leave them out of sweep, or set mib", size, f.MiB)
			}
			runs = append(runs,
				programs.FioRun{Mode: programs.FioWrite, Metric: inSweep(writeSweep, i), Unit: workload.BytesPerSecond, Block: size, For: d},
				programs.FioRun{Mode: programs.FioRead, Metric: inSweep(readSweep, i), Unit: workload.BytesPerSecond, Block: size, For: d, Again: repeat},
			)
		}
		values, err := files.measure(ctx, t, files.runs(f, runs...)...)
		if err != nil {
			return nil, err
		}
		for i := range sweep {
			t.Record(writeSweep, values[inSweep(writeSweep, i)])
			t.Record(readSweep, values[inSweep(readSweep, i)])
		}
		files.recordCache(t)
		if f.Direct {
			err = files.checkDirect(t, programs.FioFile)
		}
		return values, err
	})
}

// runs groups fio's runs into calls. A cold cache needs a call for each run; otherwise one call saves fio's start-up time.
func (s storage) runs(f programs.Fio, runs ...programs.FioRun) []stage {
	if s.cache == bench.Warm {
		return []stage{{Program: f.Run(runs...)}}
	}
	var stages []stage
	for _, r := range runs {
		stages = append(stages, stage{Program: f.Run(r), reads: r.Mode == programs.FioRead || r.Mode == programs.FioRandRead})
	}
	return stages
}

// checkDirect returns an error if requests with O_DIRECT used the host's page cache. gVisor accepts O_DIRECT silently and
// uses the cache, which makes it many times as fast as bare metal: this is not a valid result. If the host cannot see the
// file, the condition says so.
func (s storage) checkDirect(t bench.Trial, file string) error {
	const name = "direct I/O"
	if s.Dir == "" {
		t.Condition(name, "requested; whether it is honoured cannot be seen on "+string(s.Volume))
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
