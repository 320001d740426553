package runner_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
)

// served is a fake engine with cgroups and a daemon.
type served struct {
	*placed
	service engine.Daemon
}

func (s *served) Daemon() engine.Daemon { return s.service }

// newServed returns a harness on an engine whose daemon has its own cgroup.
func newServed(t *testing.T) (*harness, *served) {
	t.Helper()
	l, p := newPlaced(t)
	l.config.Programs = monitor.Programs{}
	group, err := l.config.Cgroups.Create("/" + engine.Prefix + l.config.RunID + "/daemon")
	must.Do(t, err)
	s := &served{p, engine.Daemon{PIDs: []int{1 << 30}, Cgroup: group}}
	l.config.Targets[0].Engine = s
	l.config.Work[0].Benchmark.Components = true
	return l, s
}

// work runs a process in a cgroup and returns its CPU time.
func work(ctx context.Context, t *testing.T, group *cgroup.Group) time.Duration {
	t.Helper()
	const script = `for f in "$@"; do echo 0 > "$f"; done; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done`
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, group.ProcsFiles()...)...)
	must.Do(t, cmd.Run())
	return cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
}

// The cost of a trial includes the CPU time of the daemon during the trial, and not before it.
func TestUsageWithADaemon(t *testing.T) {
	l, s := newServed(t)
	base := work(t.Context(), t, s.service.Cgroup) + work(t.Context(), t, s.service.Cgroup) + work(t.Context(), t, s.service.Cgroup)
	var usage engine.Usage
	var cost time.Duration
	l.config.Work[0].Benchmark.Run = func(ctx context.Context, trial bench.Trial) (err error) {
		cost = work(ctx, t, s.service.Cgroup)
		usage, err = trial.Cost.Usage()
		return err
	}
	l.ok()
	if trial := l.only(); trial.Status != result.OK {
		t.Fatal(trial.Reason)
	}
	if usage.CPU < cost/2 || usage.CPU > cost+base/2 {
		t.Errorf("the trial used %v of CPU time, want about %v; it was %v before", usage.CPU, cost, base)
	}
	if usage.PeakMemory != 0 || !usage.IncludesDaemon {
		t.Errorf("the usage is %+v, want it with the daemon's, and an unknown peak of the memory", usage)
	}
}

// If the daemon's cost for the trial cannot be separated, the usage is unknown and the run records the reason.
func TestUnknownUsageOfADaemon(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		before     func(*served)
		during     func(*served)
	}{
		{name: "the daemon's cgroup is not its own", says: "share a cgroup with other processes", before: func(s *served) { s.service.Cgroup = nil }},
		{name: "another daemon", says: "restarted during", during: func(s *served) { s.service.PIDs = []int{1<<30 + 1} }},
		{name: "the daemon exited", says: "restarted during", during: func(s *served) { s.service = engine.Daemon{} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, s := newServed(t)
			if tt.before != nil {
				tt.before(s)
			}
			var errs []error
			l.config.Stop.Min = 2
			l.config.Work[0].Benchmark.Run = func(_ context.Context, trial bench.Trial) error {
				if tt.during != nil {
					was := s.service
					defer func() { s.service = was }()
					tt.during(s)
				}
				_, usage := trial.Cost.Usage()
				_, cpu := trial.Cost.CPU()
				errs = append(errs, usage, cpu)
				return nil
			}
			out := l.ok()
			for _, err := range errs {
				if !engine.Unsupported(err) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("the error is %v, want one with %q", err, tt.says)
				}
			}
			if len(errs) != 4 || len(out.Caveats) != 1 || !strings.HasPrefix(out.Caveats[0], "CPU time by component is missing from trials on fake/a: ") {
				t.Errorf("%d errors; the caveats are %q, want one for all trials", len(errs), out.Caveats)
			}
		})
	}
}

// The cost is split by component only for benchmarks with Components on targets with processes on this host.
func TestCostIsNotSplitByDefault(t *testing.T) {
	for _, place := range []string{"benchmark", "run"} {
		l, _ := newServed(t)
		if place == "benchmark" {
			l.config.Work[0].Benchmark.Components = false
		} else {
			l.config.Programs = nil
		}
		var errs []error
		l.config.Work[0].Benchmark.Run = func(_ context.Context, trial bench.Trial) error {
			_, cpu := trial.Cost.CPU()
			_, memory := trial.Cost.Memory()
			errs = append(errs, cpu, memory)
			return nil
		}
		out := l.ok()
		if slices.ContainsFunc(errs, func(err error) bool { return !engine.Unsupported(err) }) || len(out.Caveats) > 0 {
			t.Errorf("disabled by the %s: %v; caveats %q", place, errs, out.Caveats)
		}
	}
}

// bare is an engine without optional interfaces, so that nothing about its memory is imagined.
type bare struct{ engine.Engine }

// Touchstone's own memory counts as available, so that its growth is no cost of a target.
func TestMemoryOfTheHost(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Targets[0].Engine = bare{l.config.Targets[0].Engine}
	const size = 1 << 40
	l.config.Meminfo = func() (map[string]int64, error) {
		return map[string]int64{"MemTotal": size, "MemFree": size, "MemAvailable": size, "AnonPages": size, "Slab": size}, nil
	}
	l.config.Supply.Tasks = func() (guard.Amount, error) { return guard.Amount{Free: 7, Total: 9}, nil }
	l.work("test.x.x", func(_ context.Context, trial bench.Trial) error {
		memory, err := trial.Cost.Host()
		share := memory["MemAvailable"] - size
		if err != nil || share < 1<<20 || share > 1<<30 || memory["MemFree"] != size+share || memory["AnonPages"] != size-share || memory["Slab"] != size {
			t.Errorf("the memory is %v, %v", memory, err)
		}
		if tasks, err := trial.Cost.Tasks(); tasks != 7 || err != nil {
			t.Errorf("Tasks = %d, %v", tasks, err)
		}
		if _, err := trial.Cost.Census(); !engine.Unsupported(err) {
			t.Errorf("Census without processes: %v", err)
		}
		return nil
	})
	l.ok()
}

// Unknown memory is unsupported, and no error of the trial.
func TestUnknownMemoryOfTheHost(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.Targets[0].Engine = bare{l.config.Targets[0].Engine}
	l.work("test.x.x", func(_ context.Context, trial bench.Trial) error {
		if memory, err := trial.Cost.Host(); !engine.Unsupported(err) || memory != nil {
			t.Errorf("Host = %v, %v", memory, err)
		}
		if _, err := trial.Cost.Tasks(); !engine.Unsupported(err) {
			t.Errorf("Tasks: %v", err)
		}
		return nil
	})
	l.ok()
}
