package runner

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
)

// crowd checks whether the containers of a benchmark fit on the host together. The first benchmark with more than one container
// measures the cost of one, outside of the trials. The result is nil if they fit, and otherwise a trial without its cell.
func (r *run) crowd(ctx context.Context, w plan.Work, t Target) *result.Trial {
	n := w.Needs()
	if n.Containers <= 1 || r.Supply.Memory == nil {
		return nil
	}
	if err := t.Engine.Supports(engine.OnMachine); err != nil { // the guard does not see the resources of that machine
		var out result.Trial
		out.Status, out.Reason = statusOf(err)
		return &out
	}
	cost, ok := r.units[t.Name]
	if !ok {
		unit, failure := r.measureUnit(ctx, t)
		if failure != nil {
			return failure
		}
		cost = unit
		r.units[t.Name] = cost
	}
	if err := r.fits(n, cost); err != nil {
		var out result.Trial
		out.Status, out.Reason = statusOf(err)
		return &out
	}
	return nil
}

// measureUnit measures the cost of one idle container as a trial that is not recorded.
func (r *run) measureUnit(ctx context.Context, t Target) (guard.Cost, *result.Trial) {
	var cost guard.Cost
	work := plan.Work{Benchmark: bench.Benchmark{
		Name: "one container", Image: bench.ProbeImage,
		Run: func(ctx context.Context, trial bench.Trial) (err error) {
			cost, err = r.oneMore(ctx, trial, r.charged(t.Engine))
			return err
		},
	}}
	out, _ := r.execute(ctx, work, t, r.asTrial(0)) // no trial of the run has this number
	if out.Status != result.OK {
		out.Reason = "measure the cost of one container: " + out.Reason
		return guard.Cost{}, &out
	}
	return cost, nil
}

// measuredContainers is the number of containers that measureUnit starts. The first one also pays for the runtime's files in the page cache
// and for the growth of a daemon; the cost comes from the others.
const measuredContainers = 5

// oneMore starts idle containers and returns the cost of each but the first:
//
//	max(charge, min(fall, 2 × charge))
//
// The charge is the mean growth of the run's cgroup. It misses memory that the kernel charges to no cgroup. The fall is the smallest fall of
// MemAvailable by one container. It includes that memory, but on a busy host other programs change MemAvailable far more than a
// container does, which the minimum does not always suppress; so it counts up to twice the charge. The processes of a user's daemon are
// not in the run's cgroup, and the cost on its targets is the fall. The number of processes has the same formula.
func (r *run) oneMore(ctx context.Context, t bench.Trial, complete bool) (guard.Cost, error) {
	var levels [measuredContainers]level
	for i := range levels {
		if _, err := bench.Start(ctx, t); err != nil {
			return guard.Cost{}, err
		}
		var err error
		if levels[i], err = r.level(); err != nil {
			return guard.Cost{}, err
		}
	}
	minimum := func(read func(level) int64) int64 {
		fall := read(levels[1]) - read(levels[0])
		for i := range levels[1:] {
			fall = min(fall, read(levels[i+1])-read(levels[i]))
		}
		return max(0, fall)
	}
	cost := func(host, group func(level) int64) int64 {
		const rest = measuredContainers - 1
		charge := max(0, group(levels[rest])-group(levels[0])+rest-1) / rest
		fall := minimum(host)
		if complete {
			fall = min(fall, 2*charge)
		}
		return max(charge, fall)
	}
	pair := int64(guard.PairBytes)
	if t.Info.Isolation == engine.NoIsolation {
		pair = 0 // it mounts no file system
	}
	return guard.Cost{
		Pair:   pair,
		Memory: cost(func(l level) int64 { return l.memory }, func(l level) int64 { return l.group.Memory }),
		Tasks:  max(1, cost(func(l level) int64 { return l.tasks }, func(l level) int64 { return l.group.Tasks })),
		Files:  minimum(func(l level) int64 { return l.files }),
	}, nil
}

// charged reports whether the run's cgroup accounts all processes of an engine, the daemon's included.
func (r *run) charged(e engine.Engine) bool {
	if r.group == nil || len(r.group.Missing()) > 0 {
		return false
	}
	switch e := e.(type) {
	case engine.DaemonBacked:
		group := e.Daemon().Cgroup
		return group != nil && strings.HasPrefix(group.Path(), r.group.Path()+"/")
	case engine.CgroupPlacer:
		return true
	}
	return false
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
		supply func() (guard.Amount, error)
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

// fits returns an error if a benchmark does not fit on the host, with containers of a given cost.
func (r *run) fits(n bench.Needs, cost guard.Cost) error {
	return r.Supply.Fits(n, guard.Directories{Data: r.Data, Memory: r.Memory}, cost)
}

// limitGroup makes the run's own cgroup, with the limits that protect the host.
func (r *run) limitGroup() error {
	if r.Cgroups == nil {
		return nil
	}
	name := "/" + engine.Prefix + r.RunID
	group, err := r.Cgroups.Create(name)
	if errors.Is(err, fs.ErrExist) {
		group, err = r.Cgroups.Open(name)
	}
	if err != nil {
		return err
	}
	r.group = group
	return guard.Limit(group, r.Supply)
}
