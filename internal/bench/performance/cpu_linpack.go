package performance

import (
	"context"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func linpack() bench.Benchmark {
	series := bench.Higher("SolutionRate", result.FlopPerSecond, "the same of each solution")
	series.Series = true
	b := bench.Benchmark{
		Name:    "performance.cpu.linpack",
		Summary: "solving a dense system of linear equations with OpenBLAS, as LINPACK does",
		Source:  "wang section 5.8; Dongarra, Luszczek, Petitet, The LINPACK Benchmark (2003)",
		Metrics: []result.Metric{bench.Scored(result.DimensionCPU, bench.Higher("FlopPerSecond", result.FlopPerSecond, "2/3 n³ + 2 n² operations over the time of the fastest solution")), series},
		Place:   "number of the solution",
		Image:   bench.WorkloadImage,
		Params: []bench.Param{
			{Name: "n", Help: "number of equations; the matrix takes 8 n² bytes", Quick: "2000", Paper: "5000", Check: bench.IntRange(100, 40_000)},
			{Name: "runs", Help: "number of solutions, one after the other", Quick: "3", Paper: "20", Check: bench.IntRange(1, 1000)},
			threadsParam(allThreads, "number of threads, or all for one for each CPU that the program sees"),
		},
		Needs: bench.InMemory(func(p bench.Params) int64 { return 8 * int64(p.Int("n")) * int64(p.Int("n")) }),
	}
	b.Run = func(ctx context.Context, t bench.Trial) error {
		runs := t.Int("runs")
		values, err := bench.Measure(ctx, t, bench.InContainer, programs.Linpack(t.Int("n"), runs, threads(t)))
		if err != nil {
			return err
		}
		t.Condition("threads", strconv.Itoa(int(values["Threads"])))
		t.Record("FlopPerSecond", values["FlopPerSecond"])
		for i := range runs {
			t.Record(series.Name, values[programs.LinpackRun(i)])
		}
		return nil
	}
	return b
}
