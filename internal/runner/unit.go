package runner

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// unit is the cost of one idle container of a target.
type unit struct {
	memory int64 // bytes
	tasks  int64 // processes and threads
	files  int64 // open files of this program
}

// crowd checks whether the containers of a benchmark fit on the host together. The first benchmark with more than one container
// measures the cost of one, outside of the trials. The result is nil if they fit, and otherwise a trial without its cell.
func (r *run) crowd(ctx context.Context, w plan.Work, t Target) *result.Trial {
	n := needs(w)
	if n.Containers <= 1 || r.Supply.Memory == nil {
		return nil
	}
	each, known := r.units[t.Name]
	if !known {
		measured, failure := r.measureUnit(ctx, t)
		if failure != nil {
			return failure
		}
		each = measured
		r.units[t.Name] = each
	}
	if err := r.fits(n, each); err != nil {
		var out result.Trial
		out.Status, out.Reason = statusOf(err)
		return &out
	}
	return nil
}

// measureUnit measures the cost of one idle container as a trial that is not recorded. Its number is 0, which no trial of the run has.
func (r *run) measureUnit(ctx context.Context, t Target) (unit, *result.Trial) {
	var each unit
	work := plan.Work{Benchmark: bench.Benchmark{
		Name: "one container", Image: bench.ProbeImage,
		Run: func(ctx context.Context, trial bench.Trial) (err error) {
			each, err = r.oneMore(ctx, trial)
			return err
		},
	}}
	out, _ := r.execute(ctx, work, t.Engine, 0)
	if out.Status != result.OK {
		out.Reason = "measure the cost of one container: " + out.Reason
		return unit{}, &out
	}
	return each, nil
}

// oneMore starts three idle containers. The first one also pays for the runtime's files in the page cache and for the growth of a daemon.
// The cost of each of the two others is
//
//	max(charge, min(fall of the second, fall of the third))
//
// The charge is the mean growth of the run's cgroup. It misses memory that the kernel charges to no cgroup, and the processes of a
// user's daemon. The fall is the fall of MemAvailable. It includes all of them, but also the noise of other programs, which the minimum
// suppresses. The number of processes has the same formula.
func (r *run) oneMore(ctx context.Context, t bench.Trial) (unit, error) {
	var levels [3]level
	for i := range levels {
		if _, err := bench.Start(ctx, t); err != nil {
			return unit{}, err
		}
		var err error
		if levels[i], err = r.level(); err != nil {
			return unit{}, err
		}
	}
	cost := func(host, group func(level) int64) int64 {
		fall := min(host(levels[1])-host(levels[0]), host(levels[2])-host(levels[1]))
		charge := group(levels[2]) - group(levels[0])
		return max(0, fall, (charge+1)/2)
	}
	files := func(l level) int64 { return l.files }
	return unit{
		memory: cost(func(l level) int64 { return l.memory }, func(l level) int64 { return l.group.Memory }),
		tasks:  max(1, cost(func(l level) int64 { return l.tasks }, func(l level) int64 { return l.group.Tasks })),
		files:  cost(files, files),
	}, nil
}

// level is the use of the host's resources at one time, and the use by the run's cgroup.
type level struct {
	memory, tasks, files int64
	group                cgroup.Level
}

func (r *run) level() (l level, err error) {
	if r.group != nil {
		if l.group, err = r.group.Level(); err != nil {
			return level{}, err
		}
	}
	for _, one := range []struct {
		used   *int64
		supply func() (Amount, error)
	}{{&l.memory, r.Supply.Memory}, {&l.tasks, r.Supply.Tasks}, {&l.files, r.Supply.Files}} {
		if one.supply == nil {
			continue
		}
		has, err := one.supply()
		if err != nil {
			return level{}, err
		}
		*one.used = has.Total - has.Free
	}
	return l, nil
}
