package isolation

import (
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

const (
	randomBlock     = 4 << 10 // of the victim's requests
	sequentialBlock = 1 << 20 // of the aggressor's
)

func disk() bench.Benchmark {
	s := speed{unit: result.PerSecond, work: "random reads of 4 KiB of the victim", unitOf: "random read of 4 KiB by fio's histogram"}
	return bench.Benchmark{
		Name:    "isolation.disk",
		Summary: "random reads while another container writes to the same disk",
		Source:  "wang section 5.8, equation 2; Xavier et al. 2015 (disk-intensive neighbours)",
		Metrics: metrics(s, ""),
		Image:   bench.WorkloadImage, Components: true,
		Waits: []bench.Medium{bench.Disk},
		Params: joined(
			[]bench.Param{
				{Name: "mib", Help: "size of the file of each party in MiB", Quick: "64", Paper: "1024", Check: bench.IntRange(1, 1<<20)},
				{Name: "direct", Help: "1 bypasses the page cache (O_DIRECT); gVisor ignores it", Quick: "1", Paper: "1", Check: bench.OneOf("0", "1")},
			},
			phaseParams(), limitParams(), aggressorParams("1"),
		),
		Needs: func(p bench.Params) bench.Needs {
			n := bench.Bind.Needs(int64(1+p.Int(aggressorsParam)) * int64(p.Int("mib")) << 20)
			n.CPUs = 2
			return needs(p, n)
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			direct := t.Param("direct") == "1"
			if direct && t.Info.Isolation == engine.UserKernel {
				t.Condition("direct I/O", "requested, but gVisor ignores it: its files may be read from the page cache")
			}
			start := func(launch launcher, run programs.FioRun) func(context.Context, bench.Trial, *party) error {
				return func(ctx context.Context, t bench.Trial, p *party) error {
					return p.fio(ctx, t, launch, limited(t, t.Spec()), programs.Fio{MiB: t.Int("mib"), Direct: direct}, run)
				}
			}
			return scene{
				victim:    start(bench.Follow, programs.FioRun{Mode: programs.FioRandRead, Metric: "victim", Block: randomBlock}),
				aggressor: start(asAggressor(t), programs.FioRun{Mode: programs.FioWrite, Metric: "aggressor", Block: sequentialBlock}),
			}.run(ctx, t)
		},
	}
}

// fioInterval returns the interval of fio's reports. A report takes up to 30 KB.
func fioInterval(t bench.Trial) time.Duration {
	return max(100*time.Millisecond, (t.Duration(beforeParam)+t.Duration(duringParam)+t.Duration(afterParam))/25)
}

// fio runs fio in a directory of its own on the host's disk.
func (p *party) fio(ctx context.Context, t bench.Trial, launch launcher, spec engine.Spec, f programs.Fio, run programs.FioRun) error {
	volume, err := bench.Bind.Mount(t)
	if err != nil {
		return err
	}
	t.Condition("storage", volume.On)
	volume.Into(&spec)
	f.Dir, run.For = bench.DataDir, longest(t)
	spec.Process.Args = f.Lines(run, fioInterval(t))
	_, err = p.launch(ctx, t, launch, spec, requests(run.Mode))
	return err
}

// requests returns the reader of fio's reports. The unit of work is a request.
func requests(mode programs.FioMode) reader {
	reports := programs.FioReports{Mode: mode}
	return func(line string) (step, bool, error) {
		p, ok, err := reports.Line(line)
		if err != nil || !ok || len(p.Requests) == 0 {
			return step{}, false, err
		}
		s := step{times: []times{}}
		for seconds, count := range p.Requests {
			s.work += count
			s.times = append(s.times, times{seconds: seconds, count: count})
		}
		return s, true, nil
	}
}
