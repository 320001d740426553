package performance

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// allThreads stands for one thread for each CPU that the program sees.
const allThreads = "all"

// threadsParam is the parameter for the number of threads that work at once.
func threadsParam(paper, help string) bench.Param {
	number := bench.IntRange(1, 256)
	return bench.Param{
		Name: "threads", Help: help, Quick: "1", Paper: paper,
		Check: func(v string) error {
			if v == allThreads {
				return nil
			}
			if err := number(v); err != nil {
				return errors.New(err.Error() + ", or " + allThreads)
			}
			return nil
		},
	}
}

// threads reads the parameter; 0 stands for all.
func threads(t bench.Trial) int {
	if t.Param("threads") == allThreads {
		return 0
	}
	return t.Int("threads")
}

func cpuTime() bench.Benchmark {
	return ofProgram(bench.Benchmark{
		Name:    "performance.cpu.time",
		Summary: "counting primes with sysbench cpu, a fixed amount of work",
		Source:  "espe figure 3, table 1 (CPUTime); nishimura section 4.3, tables 3 and 4; wang figure 6 with four threads",
		Metrics: []result.Metric{bench.Seconds("TotalTime", "time until all events are done; each event counts the primes again")},
		Params: []bench.Param{
			{Name: "prime", Help: "largest number in the search for primes", Quick: "20000", Paper: "20000", Check: bench.IntRange(3, 10_000_000)},
			{Name: "events", Help: "number of searches", Quick: "1000", Paper: "10000", Check: bench.IntRange(100, 100_000_000)},
			{Name: "threads", Help: "number of threads that share the work; wang takes 4", Quick: "1", Paper: "1", Check: bench.IntRange(1, 256)},
		},
	}, func(t bench.Trial) workload.Program {
		return workload.SysbenchCPU(t.Int("prime"), t.Int("events"), t.Int("threads"))
	})
}

func sevenZip() bench.Benchmark {
	var metrics []result.Metric
	for _, d := range []struct{ name, of string }{
		{"Compress", "compressing, the mean of the passes"}, {"Decompress", "decompressing, the mean of the passes"}, {"Total", "the mean of both"},
	} {
		metrics = append(metrics,
			bench.Higher(d.name+"Rating", result.Score, "7-Zip's rating in MIPS of "+d.of),
			bench.Higher(d.name+"Usage", result.Ratio, "CPU time over elapsed time of "+d.of+", as the program sees both; 100 % is one CPU"),
			bench.Higher(d.name+"PerUsage", result.Score, "7-Zip's R/U in MIPS of "+d.of+": the rating of one CPU; it compares only targets with the same usage"),
		)
	}
	return ofProgram(bench.Benchmark{
		Name:    "performance.cpu.sevenzip",
		Summary: "compressing and decompressing in memory with 7-Zip's benchmark",
		Source:  "sateri section 4.3, tables 4.7 and 4.8",
		Metrics: metrics,
		Params: []bench.Param{
			threadsParam(allThreads, "number of threads, or all for one for each CPU that the program sees, as in the paper; a virtual machine has CPUs of its own"),
			{
				Name: "dictionary", Help: "size of the largest dictionary as a power of two; the passes go from 18 to it, or from 22 if it is at least 22",
				Quick: "18", Paper: "25", Check: bench.IntRange(18, 30),
			},
			{
				Name: "step", Help: "amount of work in a step, as its time on a slow CPU; usage is counted in ticks of 10ms, so that short steps make it coarse",
				Quick: "500ms", Paper: "4s", Check: bench.TimeRange(100*time.Millisecond, time.Hour),
			},
		},
	}, func(t bench.Trial) workload.Program {
		return workload.SevenZip{Threads: threads(t), Dictionary: t.Int("dictionary"), Step: t.Duration("step")}.Program()
	})
}

func zstd() bench.Benchmark {
	return ofProgram(bench.Benchmark{
		Name:    "performance.cpu.zstd",
		Summary: "compressing and decompressing a text in memory with zstd's benchmark, in one thread",
		Source:  "peers (lzbench, the Phoronix Test Suite's compress-zstd)",
		Metrics: []result.Metric{
			bench.Higher("Compression", result.BytesPerSecond, "bytes of the text compressed per second, in the fastest run of about a second"),
			bench.Higher("Decompression", result.BytesPerSecond, "bytes of the text restored per second, in the fastest run of about a second"),
		},
		Params: []bench.Param{
			{Name: "level", Help: "compression level; a higher level compresses better and takes longer", Quick: "3", Paper: "3", Check: bench.IntRange(1, 19)},
			{Name: "seconds", Help: "minimum time of each direction; zstd's own value is 3", Quick: "1", Paper: "3", Check: bench.IntRange(1, 3600)},
		},
	}, func(t bench.Trial) workload.Program {
		return workload.Zstd(t.Int("level"), time.Duration(t.Int("seconds"))*time.Second)
	})
}

func dav1d() bench.Benchmark {
	var frames []string
	for _, n := range workload.DecodedFrames() {
		frames = append(frames, strconv.Itoa(n))
	}
	b := ofProgram(bench.Benchmark{
		Name:    "performance.cpu.dav1d",
		Summary: "decoding an AV1 video of 1920 × 1080 with dav1d, after a check of the pictures' checksum",
		Source:  "wang figure 7, with a different clip, which can be generated again",
		Metrics: []result.Metric{bench.Higher("FramesPerSecond", result.PerSecond, "frames over the time from before the first to after the last; the pictures are discarded")},
		Params: []bench.Param{
			{Name: "frames", Help: "number of frames that are decoded", Quick: frames[0], Paper: frames[len(frames)-1], Check: bench.OneOf(frames...)},
			threadsParam(allThreads, "number of threads, or all for one for each CPU that the program sees, as in the paper"),
		},
	}, func(t bench.Trial) workload.Program { return workload.Dav1d(t.Int("frames"), threads(t)) })
	measure := b.Run
	b.Run = func(ctx context.Context, t bench.Trial) error {
		// The verification comes first, so that the clip is in the page cache on all targets.
		if _, err := bench.Measure(ctx, t, bench.InContainer, workload.Dav1dVerify(t.Int("frames"))); err != nil {
			return err
		}
		return measure(ctx, t)
	}
	return b
}

func linpack() bench.Benchmark {
	return ofProgram(bench.Benchmark{
		Name:    "performance.cpu.linpack",
		Summary: "solving a dense system of linear equations with OpenBLAS, as LINPACK does",
		Source:  "wang section 5.8; Dongarra, Luszczek, Petitet, The LINPACK Benchmark (2003)",
		Metrics: []result.Metric{bench.Higher("FlopPerSecond", result.FlopPerSecond, "2/3 n³ + 2 n² operations over the time of the fastest solution")},
		Params: []bench.Param{
			{Name: "n", Help: "number of equations; the matrix takes 8 n² bytes", Quick: "2000", Paper: "5000", Check: bench.IntRange(100, 40_000)},
			{Name: "runs", Help: "number of solutions", Quick: "3", Paper: "3", Check: bench.IntRange(1, 1000)},
			threadsParam(allThreads, "number of threads, or all for one for each CPU that the program sees"),
		},
	}, func(t bench.Trial) workload.Program { return workload.Linpack(t.Int("n"), t.Int("runs"), threads(t)) })
}
