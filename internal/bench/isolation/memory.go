package isolation

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func memory() bench.Benchmark {
	s := speed{unit: result.BytesPerSecond, work: "memory bandwidth of the victim's repetitions, all four kernels of STREAM together,", unitOf: "repetition"}
	return bench.Benchmark{
		Name:    "isolation.memory",
		Summary: "memory bandwidth while another container takes bandwidth",
		Source:  "wang section 5.8, equation 2; McCalpin, STREAM",
		Metrics: metrics(s, ""),
		Image:   bench.WorkloadImage, Components: true,
		Params: joined(
			[]bench.Param{{
				Name: "mib", Help: "size of each of the three arrays of victim and aggressor in MiB; should be 4 times the last cache",
				Quick: "32", Paper: "128", Check: bench.IntRange(1, 65536),
			}},
			phaseParams(), limitParams(), aggressorParams("1"),
		),
		Needs: func(p bench.Params) bench.Needs {
			arrays := 3 * int64(p.Int("mib")) << 20
			return needs(p, bench.Needs{Memory: arrays * int64(1+p.Int(aggressorsParam)), CPUs: 2})
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			start := func(launch launcher) func(context.Context, bench.Trial, *party) error {
				return func(ctx context.Context, t bench.Trial, p *party) error {
					spec := limited(t, t.Spec(probe.StreamLines(t.Int("mib"), longest(t))...))
					_, err := p.launch(ctx, t, launch, spec, moves)
					return err
				}
			}
			return scene{victim: start(bench.Follow), aggressor: start(asAggressor(t))}.run(ctx, t)
		},
	}
}

// moves reads the lines of the probe's stream.
func moves(line string) (step, bool, error) {
	n, err := probe.ParseMoved(line)
	return step{work: float64(n)}, err == nil, err
}
