package isolation

import (
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// Numbers of equations of the paper.
const (
	paperVictim    = 5000
	paperAggressor = 20000
)

func cpu() bench.Benchmark {
	s := speed{unit: result.FlopPerSecond, work: "speed of the victim's solutions, with LINPACK's number of operations, including the generation of the matrix,", unitOf: "solution"}
	return bench.Benchmark{
		Name:    "isolation.cpu",
		Summary: "the speed of LU solutions while another container solves a larger system",
		Source:  "wang section 5.8, equation 2, figures 19 to 22: Linpack with n = 5000 beside n = 20000, two CPUs and 4 GiB each",
		Metrics: metrics(s, result.DimensionIsolation),
		Image:   bench.WorkloadImage, Components: true,
		Params: joined(
			[]bench.Param{
				{Name: "n", Help: "number of the victim's equations; the matrix takes 8 n² bytes", Quick: "1000", Paper: fmt.Sprint(paperVictim), Check: bench.IntRange(100, 40_000)},
				{Name: "threads", Help: "number of threads of each party", Quick: "1", Paper: "2", Check: bench.IntRange(1, 1024)},
				{Name: "noise", Help: "number of the aggressor's equations", Quick: "1500", Paper: fmt.Sprint(paperAggressor), Check: bench.IntRange(100, 40_000)},
			},
			phaseParams(), limitParams(), aggressorParams("2"),
		),
		Needs: func(p bench.Params) bench.Needs {
			return needs(p, bench.Needs{Memory: matrix(p.Int("n")) + int64(p.Int(aggressorsParam))*matrix(p.Int("noise")), CPUs: p.Int(cpusParam)})
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			n, noise := t.Int("n"), t.Int("noise")
			recordScale(t, n != paperVictim || noise != paperAggressor,
				fmt.Sprintf("n = %d beside n = %d; the paper has %d beside %d", n, noise, paperVictim, paperAggressor))
			start := func(n int, launch launcher) func(context.Context, bench.Trial, *party) error {
				return func(ctx context.Context, t bench.Trial, p *party) error {
					spec := limited(t, t.Spec(programs.LinpackLines(n, t.Int("threads"), longest(t))...))
					_, err := p.launch(ctx, t, launch, spec, solutions(n))
					return err
				}
			}
			return scene{victim: start(n, bench.Follow), aggressor: start(noise, asAggressor(t))}.run(ctx, t)
		},
	}
}

// matrix is the memory of a system of equations.
func matrix(n int) int64 { return 8 * int64(n) * int64(n) }

// solutions reads the lines of linpack.
func solutions(n int) reader {
	count := 0
	return func(line string) (step, bool, error) {
		got, err := programs.ParseSolved(line)
		if err == nil && got != count+1 {
			err = fmt.Errorf("solution %d follows solution %d", got, count)
		}
		if err != nil {
			return step{}, false, err
		}
		count = got
		return step{work: programs.LinpackOperations(n)}, true, nil
	}
}
