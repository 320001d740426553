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

// cpu lists the benchmarks of how fast programs compute.
func cpu() []bench.Benchmark {
	return []bench.Benchmark{cpuTime(), sevenZip(), dav1d(), linpack()}
}

// allThreads asks for as many threads as the program sees CPUs.
const allThreads = "all"

// threadsParam is the parameter for how many threads work at once.
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

// threads reads the parameter; 0 is all.
func threads(t bench.Trial) (n int, err error) {
	if t.Param("threads") != allThreads {
		err = bench.Numbers(t, map[string]*int{"threads": &n})
	}
	return n, err
}

func cpuTime() bench.Benchmark {
	metrics := []result.Metric{total("TotalTime", "time until all events are done, in each of which the primes are counted anew")}
	return bench.Benchmark{
		Name:    "performance.cpu.time",
		Summary: "counting primes with sysbench cpu, a fixed amount of work",
		Source:  "espe figure 3, table 1 (CPUTime); nishimura section 4.3, tables 3 and 4; wang figure 6 with four threads",
		Metrics: metrics,
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "prime", Help: "up to which number primes are counted", Quick: "20000", Paper: "20000", Check: bench.IntRange(3, 10_000_000)},
			{Name: "events", Help: "how often they are counted", Quick: "1000", Paper: "10000", Check: bench.IntRange(100, 100_000_000)},
			{Name: "threads", Help: "how many threads share the work; wang takes 4", Quick: "1", Paper: "1", Check: bench.IntRange(1, 256)},
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var prime, events, threads int
			if err := bench.Numbers(t, map[string]*int{"prime": &prime, "events": &events, "threads": &threads}); err != nil {
				return err
			}
			return measureProgram(ctx, t, workload.SysbenchCPU(prime, events, threads), metrics)
		},
	}
}

func sevenZip() bench.Benchmark {
	var metrics []result.Metric
	for _, d := range []struct{ name, of string }{
		{"Compress", "compressing, the mean of the passes"}, {"Decompress", "decompressing, the mean of the passes"}, {"Total", "the mean of both"},
	} {
		metrics = append(metrics,
			higher(d.name+"Rating", result.Score, "7-Zip's rating in MIPS of "+d.of),
			higher(d.name+"Usage", result.Ratio, "CPU time over the time passed of "+d.of+", as the program sees both; 100 % is one CPU"),
			higher(d.name+"PerUsage", result.Score, "7-Zip's R/U in MIPS of "+d.of+": the rating of one CPU; it compares only targets with the same usage"),
		)
	}
	return bench.Benchmark{
		Name:    "performance.cpu.sevenzip",
		Summary: "compressing and decompressing in memory with 7-Zip's benchmark",
		Source:  "sateri section 4.3, tables 4.7 and 4.8",
		Metrics: metrics,
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			threadsParam(allThreads, "how many threads work at once, or all for as many as the program sees CPUs, as in the paper: in a virtual machine these are its own"),
			{
				Name: "dictionary", Help: "size of the largest dictionary as a power of two; there are passes from 18 to it, and from 22 on from 22 to it",
				Quick: "18", Paper: "25", Check: bench.IntRange(18, 30),
			},
			{
				Name: "step", Help: "how much work a step is, by the time it takes on a slow CPU; usage is counted in ticks of 10ms, and is the coarser the shorter a step",
				Quick: "500ms", Paper: "4s", Check: stepOf,
			},
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var z workload.SevenZip
			var errs [3]error
			z.Threads, errs[0] = threads(t)
			errs[1] = bench.Numbers(t, map[string]*int{"dictionary": &z.Dictionary})
			z.Step, errs[2] = time.ParseDuration(t.Param("step"))
			if err := errors.Join(errs[:]...); err != nil {
				return err
			}
			return measureProgram(ctx, t, z.Program(), metrics)
		},
	}
}

// stepOf checks the length of a step of 7-Zip's.
func stepOf(v string) error {
	if d, err := time.ParseDuration(v); err != nil || d < 100*time.Millisecond || d > time.Hour {
		return errors.New("must be a time from 100ms to 1h, such as 1s")
	}
	return nil
}

func dav1d() bench.Benchmark {
	metrics := []result.Metric{higher("FramesPerSecond", result.PerSecond, "frames over the time from before the first to after the last; the pictures are dropped")}
	var frames []string
	for _, n := range workload.DecodedFrames() {
		frames = append(frames, strconv.Itoa(n))
	}
	return bench.Benchmark{
		Name:    "performance.cpu.dav1d",
		Summary: "decoding an AV1 video of 1920 × 1080 with dav1d, checked beforehand by the sum of its pictures",
		Source:  "wang figure 7, with a clip of its own that can be generated anew",
		Metrics: metrics,
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "frames", Help: "how many frames are decoded", Quick: frames[0], Paper: frames[len(frames)-1], Check: bench.OneOf(frames...)},
			threadsParam(allThreads, "how many threads work at once, or all for as many as the program sees CPUs, as in the paper"),
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var frames int
			threads, err := threads(t)
			if err := errors.Join(err, bench.Numbers(t, map[string]*int{"frames": &frames})); err != nil {
				return err
			}
			// First, so that the clip is in the page cache on all targets.
			verify := workload.Dav1dVerify(frames)
			if _, err := bench.Measure(ctx, t, bench.SpecOf(t, verify), verify); err != nil {
				return err
			}
			return measureProgram(ctx, t, workload.Dav1d(frames, threads), metrics)
		},
	}
}

func linpack() bench.Benchmark {
	metrics := []result.Metric{higher("FlopPerSecond", result.FlopPerSecond, "2/3 n³ + 2 n² operations over the time of the fastest solution")}
	return bench.Benchmark{
		Name:    "performance.cpu.linpack",
		Summary: "solving a dense system of linear equations with OpenBLAS, as LINPACK does",
		Source:  "wang section 5.8; Dongarra, Luszczek, Petitet, The LINPACK Benchmark (2003)",
		Metrics: metrics,
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "n", Help: "how many equations; the matrix takes 8 n² bytes", Quick: "2000", Paper: "5000", Check: bench.IntRange(100, 40_000)},
			{Name: "runs", Help: "how often it is solved", Quick: "3", Paper: "3", Check: bench.IntRange(1, 1000)},
			threadsParam(allThreads, "how many threads work at once, or all for as many as the program sees CPUs"),
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var n, runs int
			threads, err := threads(t)
			if err := errors.Join(err, bench.Numbers(t, map[string]*int{"n": &n, "runs": &runs})); err != nil {
				return err
			}
			return measureProgram(ctx, t, workload.Linpack(n, runs, threads), metrics)
		},
	}
}
