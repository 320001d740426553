package isolation

import (
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
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
			phaseParams(), limitParams("512"), aggressorParams("1"),
		),
		Needs: func(p bench.Params) bench.Needs {
			hogs := int64(p.Int(aggressorsParam)) * int64(p.Int("hog")) << 20
			n := bench.Bind.Needs(overcommit * hogs)
			n.Capabilities = append(n.Capabilities, engine.CanExec)
			n.Memory, n.CPUs = 2*int64(p.Int("mib"))<<20+hogs, 2
			return needs(p, n)
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			values := t.Int("mib") * valuesPerMiB
			t.Condition("aggressor's memory limit", fmt.Sprintf("%d MiB, for a file of %d MiB", t.Int("hog"), overcommit*t.Int("hog")))
			return scene{
				victim: func(ctx context.Context, t bench.Trial, p *party) error { return p.redis(ctx, t, values) },
				aggressor: func(ctx context.Context, t bench.Trial, p *party) error {
					spec := t.Spec()
					spec.Resources.Memory = int64(t.Int("hog")) << 20
					f := workload.Fio{MiB: overcommit * t.Int("hog")}
					return p.fio(ctx, t, asAggressor(t), limited(t, spec), f, workload.FioRun{Mode: workload.FioRead, Metric: "hog", Block: sequentialBlock})
				},
			}.run(ctx, t)
		},
	}
}

// redis runs a filled server and a client that reads its values, in one container.
func (p *party) redis(ctx context.Context, t bench.Trial, values int) error {
	listening := make(chan struct{})
	ready := false
	server := limited(t, t.Spec(workload.RedisServe()...))
	c, err := p.launch(ctx, t, bench.Follow, server, func(line string) (step, bool, error) {
		listens, err := workload.RedisListens(line)
		if listens && !ready {
			ready = true
			close(listening)
		}
		return step{}, false, err
	})
	if err != nil {
		return err
	}
	if err := wait(ctx, t, listening); err != nil {
		return err
	}
	fill := workload.RedisFill(values)
	if _, _, err := bench.Run(ctx, t, bench.Within(c.Container), t.Spec(fill.Args...), fill); err != nil {
		return err
	}
	execer, err := bench.Optional[engine.Execer](c.Container, engine.CanExec)
	if err != nil {
		return err
	}
	read := func(line string) (step, bool, error) {
		err := workload.ParseSwept(line)
		return step{work: workload.RedisSweeps}, err == nil, err
	}
	client := engine.Process{Args: workload.RedisSweep(values), Stdout: bench.Lines(t, p.lines(read)), Stderr: t.Watch()}
	exited := make(chan struct{})
	ctx, stop := context.WithCancel(ctx)
	// The client ends with its container. A client that is killed alone may stay behind as a zombie, and a stream of CRI may
	// outlive the container.
	p.ends = append(p.ends, func() {
		stop()
		<-exited
	})
	go func() {
		defer close(exited)
		exit, err := execer.Exec(ctx, client)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			p.broken(err)
		default:
			p.broken(fmt.Errorf("the program %q ended early: %v", client.Args[0], exit))
		}
	}()
	return nil
}
