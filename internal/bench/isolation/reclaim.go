package isolation

import (
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// valuesPerMiB is the number of Redis's values in a MiB of data.
const valuesPerMiB = 256

// overcommit is the size of the hog's file over the hog's memory limit.
const overcommit = 2

func reclaim() bench.Benchmark {
	s := speed{unit: result.PerSecond, work: "values of 4 KiB that the victim's Redis reads", unitOf: "sweep over 2000 values"}
	return bench.Benchmark{
		Name:    "isolation.memory.reclaim",
		Summary: "Redis while another container reads a file larger than its memory limit, so that the kernel reclaims its pages",
		Source:  "wang section 5.8, equation 2; peers (a memory hog inside its cgroup's limit)",
		Metrics: metrics(s, ""),
		Image:   bench.WorkloadImage, Components: true,
		Waits: []bench.Medium{bench.Disk, bench.Memory},
		Params: joined(
			[]bench.Param{
				{Name: "mib", Help: "data of Redis in MiB", Quick: "64", Paper: "1024", Check: bench.IntRange(8, 64<<10)},
				{Name: "hog", Help: "memory limit of the aggressor in MiB; its file is twice as large", Quick: "128", Paper: "1024", Check: bench.IntRange(64, 64<<10)},
			},
			phaseParams(), limitParams(), aggressorParams("1"),
		),
		Needs: func(p bench.Params) bench.Needs {
			hogs := int64(p.Int(aggressorsParam)) * int64(p.Int("hog")) << 20
			n := bench.Bind.Needs(overcommit * hogs)
			n.Memory, n.CPUs = 2*int64(p.Int("mib"))<<20+hogs, 2
			return needs(p, n)
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			values := t.Int("mib") * valuesPerMiB
			t.Condition("aggressor's memory limit", fmt.Sprintf("%d MiB in place of the limit of each party, for a file of %d MiB", t.Int("hog"), overcommit*t.Int("hog")))
			return scene{
				victim: func(ctx context.Context, t bench.Trial, p *party) error { return p.redis(ctx, t, values) },
				aggressor: func(ctx context.Context, t bench.Trial, p *party) error {
					spec := t.Spec()
					spec.Resources.Memory = int64(t.Int("hog")) << 20
					f := programs.Fio{MiB: overcommit * t.Int("hog")}
					return p.fio(ctx, t, asAggressor(t), limited(t, spec), f, programs.FioRun{Mode: programs.FioRead, Metric: "hog", Block: sequentialBlock})
				},
			}.run(ctx, t)
		},
	}
}

// redis runs a filled server and a client that reads its values, in one container.
func (p *party) redis(ctx context.Context, t bench.Trial, values int) error {
	spec := limited(t, t.Spec(programs.RedisSweep(values, longest(t))...))
	spec.Process.Env = []string{"LC_ALL=C"}
	lines := programs.RedisSwept{Values: values}
	_, err := p.launch(ctx, t, bench.Follow, spec, func(line string) (step, bool, error) {
		hasSwept, err := lines.Line(line)
		return step{work: programs.RedisSweeps}, hasSwept, err
	})
	return err
}
