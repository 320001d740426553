package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// has returns a resource with a constant amount.
func has(free, total int64) func() (guard.Amount, error) {
	return func() (guard.Amount, error) { return guard.Amount{Free: free, Total: total}, nil }
}

// The reserves are 1228 MiB of memory of 24 GiB, 128 MiB of 1 GiB and 8 MiB of 64 MiB.
//
// Invariant host-guard: A benchmark starts only if it fits on the host beside the reserve, and the run's cgroup and OOM scores protect other
// programs (ADR 23).
func TestNeedsAreCheckedFirst(t *testing.T) {
	for _, tt := range []struct {
		name         string
		needs        bench.Needs
		data, memory guard.Amount // of the directories
		supply       guard.Supply
		reason       string
	}{
		{
			name: "just enough", needs: bench.Needs{Space: bench.Space{Disk: 2 * gib, Memory: 56 * mib, Tmpfs: 72 * mib}, Memory: 768 * mib, CPUs: 2},
			data: guard.Amount{Free: 4 * gib, Total: 40 * gib}, memory: guard.Amount{Free: 64 * mib, Total: 64 * mib},
			supply: guard.Supply{Memory: has(gib, gib), CPUs: 2},
		},
		{name: "nothing needed", supply: guard.Supply{Memory: has(0, gib), Tasks: has(2000, 32768), Files: has(0, 1024), CPUs: 1}},
		{name: "nothing known", needs: bench.Needs{Containers: 1 << 20, Memory: 1 << 60, CPUs: 1000}},
		{
			name: "disk", needs: bench.Needs{Space: bench.Space{Disk: 2 * gib}}, data: guard.Amount{Free: 4*gib - 1, Total: 80 * gib},
			reason: "space for its files: it writes up to 2.0 GiB, and DATA has 0 KiB above its reserve of 4.0 GiB: 2.0 GiB are missing; make room there, or set smaller parameters",
		},
		{
			name: "directory in memory", needs: bench.Needs{Space: bench.Space{Memory: 57 * mib}}, memory: guard.Amount{Free: 64 * mib, Total: 64 * mib},
			supply: guard.Supply{Memory: has(gib, gib)},
			reason: "space for its files: it writes up to 57.0 MiB, and MEMORY has 56.0 MiB above its reserve of 8.0 MiB: 1.0 MiB are missing; make room there, or set smaller parameters",
		},
		{
			name: "memory", needs: bench.Needs{Space: bench.Space{Tmpfs: gib}, Memory: 23 * gib}, supply: guard.Supply{Memory: has(24*gib, 24*gib)},
			reason: "memory: it needs 24.0 GiB (programs with 23.0 GiB, files with 1.0 GiB), and the host has 22.8 GiB above its reserve of 1.2 GiB: 1.2 GiB are missing; " +
				"free memory, or set smaller parameters",
		},
		{
			name: "processes", needs: bench.Needs{Containers: 31_000}, supply: guard.Supply{Tasks: has(32_000, 32_768)},
			reason: "processes and threads: it needs 31000 (31000 containers of 1), and the host has 30362 above its reserve of 1638: 638 are missing; " +
				"raise kernel.pid_max and kernel.threads-max, or set smaller parameters",
		},
		{
			name: "CPUs", needs: bench.Needs{CPUs: 4}, supply: guard.Supply{CPUs: 2},
			reason: "CPUs: it needs 4, and containers have 2; pin less, set smaller parameters, or use a larger machine",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			l.config.Memory = t.TempDir()
			l.work("test.one.x", live)
			l.config.Work[0].Params = bench.Params{"size": "2"}
			l.config.Work[0].Benchmark.Needs = func(p bench.Params) bench.Needs {
				if p["size"] != "2" {
					t.Errorf("Needs is called with %v", p)
				}
				return tt.needs
			}
			l.config.Supply = tt.supply
			if tt.data.Total+tt.memory.Total > 0 {
				l.config.Supply.Disk = func(dir string) (guard.Amount, error) {
					return map[string]guard.Amount{l.config.Data: tt.data, l.config.Memory: tt.memory}[dir], nil
				}
			}
			l.ok()
			names := strings.NewReplacer(l.config.Data, "DATA", l.config.Memory, "MEMORY")
			if got := names.Replace(l.only().Reason); got != tt.reason || (l.only().Status == result.OK) != (tt.reason == "") {
				t.Errorf("%s because %q, want %q", l.only().Status, got, tt.reason)
			}
		})
	}
}

// A benchmark is skipped if a resource that it needs cannot be read.
func TestUnreadableSupply(t *testing.T) {
	fail := func() (guard.Amount, error) { return guard.Amount{}, errBroken }
	for name, tt := range map[string]struct {
		needs  bench.Needs
		supply guard.Supply
	}{
		"disk":   {bench.Needs{Space: bench.Space{Disk: 1}}, guard.Supply{Disk: func(string) (guard.Amount, error) { return fail() }}},
		"memory": {bench.Needs{Memory: 1}, guard.Supply{Memory: fail}},
		"tasks":  {bench.Needs{Containers: 2}, guard.Supply{Tasks: fail}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			l.work("test.one.x", live)
			l.config.Work[0].Benchmark.Needs = func(bench.Params) bench.Needs { return tt.needs }
			l.config.Supply = tt.supply
			l.ok()
			if trial := l.only(); trial.Status != result.Skipped || trial.Reason != errBroken.Error() {
				t.Errorf("%s because %q", trial.Status, trial.Reason)
			}
		})
	}
}

// On a host without directories in memory the trial reports it, and the space is not checked.
func TestSpaceWithoutMemoryDirectory(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.one.x", live)
	l.config.Work[0].Benchmark.Needs = func(bench.Params) bench.Needs { return bench.Needs{Space: bench.Space{Memory: 1 << 60}} }
	l.config.Supply = guard.Supply{
		Disk:   func(string) (guard.Amount, error) { return guard.Amount{}, errBroken },
		Memory: has(gib, gib),
	}
	l.ends(result.OK, "")
}

// crowded is an engine whose containers take memory, processes and open files of a simulated host. The first one takes more.
type crowded struct {
	engine.Engine
	live             int64
	created          int
	each, first      int64 // bytes
	tasks, files     int64
	noise            map[int]int64 // bytes that other programs take, by the number of created containers
	available, total int64
}

func (c *crowded) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	container, err := c.Engine.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if c.created++; c.created == 1 {
		c.available -= c.first
	}
	c.available -= c.noise[c.created]
	c.live++
	return &crowdedContainer{Container: container, crowded: c}, nil
}

func (c *crowded) Info() engine.Info {
	info := c.Engine.Info()
	info.Isolation = engine.SharedKernel
	return info
}

type crowdedContainer struct {
	engine.Container
	*crowded
	deleted bool
}

func (c *crowdedContainer) Delete(ctx context.Context) error {
	if !c.deleted {
		c.deleted = true
		c.live--
	}
	return c.Container.Delete(ctx)
}

func (c *crowded) supply() guard.Supply {
	return guard.Supply{
		Memory: func() (guard.Amount, error) {
			return guard.Amount{Free: c.available - c.live*c.each, Total: c.total}, nil
		},
		Tasks: func() (guard.Amount, error) { return guard.Amount{Free: 30_000 - c.live*c.tasks, Total: 32_768}, nil },
		Files: func() (guard.Amount, error) { return guard.Amount{Free: 20_000 - c.live*c.files, Total: 20_000}, nil },
	}
}

// A benchmark with several containers is skipped on a target whose containers do not fit, and runs on the other one. The cost of one
// container is measured once for each target, after a first container, and without the noise of other programs.
//
// Invariant host-guard.
func TestContainersAreExtrapolated(t *testing.T) {
	for _, tt := range []struct {
		name       string
		containers int
		target     crowded
		reason     string
	}{
		{name: "fits", containers: 2000, target: crowded{each: mib, first: 512 * mib, tasks: 3, files: 2}},
		{name: "noise of another program", containers: 2000, target: crowded{each: mib, tasks: 3, files: 2, noise: map[int]int64{3: gib}}},
		{
			name: "memory", containers: 7000, target: crowded{each: mib + mib/4, tasks: 2, files: 1},
			reason: "memory: it needs 13.9 GiB (7000 containers of 1.2 MiB, the kernel's tables for them with 4.4 GiB, programs with 1.0 GiB), " +
				"and the host has 10.8 GiB above its reserve of 1.2 GiB: 3.1 GiB are missing; " +
				"free memory, or set smaller parameters",
		},
		{
			name: "threads", containers: 1000, target: crowded{each: mib, tasks: 40, files: 2},
			reason: "processes and threads: it needs 40000 (1000 containers of 40), and the host has 28362 above its reserve of 1638: 11638 are missing; " +
				"raise kernel.pid_max and kernel.threads-max, or set smaller parameters",
		},
		{
			name: "open files", containers: 5000, target: crowded{each: mib / 4, tasks: 1, files: 4},
			reason: "open files: it needs 20000 (5000 containers of 4), and the host has 19000 above its reserve of 1000: 1000 are missing; " +
				"raise the limit (ulimit -n), or set smaller parameters",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			c := tt.target
			c.Engine, c.available, c.total = l.config.Targets[0].Engine, 12*gib, 24*gib
			l.config.Targets[0].Engine = &c
			l.config.Supply = c.supply()
			l.config.Stop.Min, l.config.Stop.Max = 2, 2
			l.work("test.one.x", live)
			l.config.Work[0].Benchmark.Needs = func(bench.Params) bench.Needs { return bench.Needs{Containers: tt.containers, Memory: gib} }
			l.ok()
			got := l.trials[0]
			if got.Reason != tt.reason || (got.Status == result.OK) != (tt.reason == "") {
				t.Errorf("%s because %q, want %q", got.Status, got.Reason, tt.reason)
			}
			want := 5 // for the measurement
			if tt.reason == "" {
				want += 2 // a trial of each block
			}
			if c.created != want || c.live != 0 || got.Seq != 1 {
				t.Errorf("%d containers were created, want %d; %d are left; the first trial is %d", c.created, want, c.live, got.Seq)
			}
		})
	}
}

// A target whose containers do not start has no cost: the trial has the reason, and the next one measures again.
func TestUnitFails(t *testing.T) {
	l := newHarness(t, "fake/a@fail=create#2")
	l.config.Supply = guard.Supply{Memory: has(12*gib, 24*gib)}
	l.config.Stop.Min, l.config.Stop.Max = 2, 2
	l.work("test.one.x", live)
	l.config.Work[0].Benchmark.Needs = func(bench.Params) bench.Needs { return bench.Needs{Containers: 2} }
	l.ok()
	if first := l.trials[0]; first.Status != result.Failed || !strings.HasPrefix(first.Reason, "measure the cost of one container: ") {
		t.Errorf("the first trial is %s because %q", first.Status, first.Reason)
	}
	if second := l.trials[1]; second.Status != result.OK || second.Block != 1 {
		t.Errorf("the second trial is %s because %q", second.Status, second.Reason)
	}
}

// The run's cgroup has limits during the trials: the free memory and processes of the host without the reserve.
//
// Invariant host-guard.
func TestRunsCgroupIsLimited(t *testing.T) {
	l, _ := newPlaced(t)
	l.config.Supply = guard.Supply{Memory: has(12*gib, 24*gib), Tasks: has(30_000, 32_768)}
	found := map[string]int64{}
	l.config.Work[0].Benchmark.Run = func(context.Context, bench.Trial) error {
		for _, m := range l.config.Cgroups.Mounts {
			for _, file := range []string{"memory.limit_in_bytes", "memory.max", "pids.max"} {
				text, err := os.ReadFile(filepath.Join(m.Dir, l.config.Cgroups.Base(), engine.Prefix+l.config.RunID, file))
				if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil {
					found[strings.TrimSuffix(strings.TrimSuffix(file, ".limit_in_bytes"), ".max")] = n
				}
			}
		}
		return nil
	}
	outcome := l.ok()
	if len(outcome.Caveats) > 0 {
		t.Errorf("caveats: %q", outcome.Caveats)
	}
	group, err := l.config.Cgroups.Open("/" + engine.Prefix + l.config.RunID)
	must.Do(t, err)
	want := map[string]int64{"memory": 12*gib - 24*gib/20, "pids": 30_000 - 32_768/20}
	for _, missing := range group.Missing() {
		delete(want, missing)
	}
	// The kernel rounds a limit of memory down to pages; an empty cgroup may already have some pages.
	if n, ok := found["memory"]; ok && n >= want["memory"]-4<<10 && n < want["memory"]+mib {
		found["memory"] = want["memory"]
	}
	expect.Equal(t, "limits", want, found)
	if dirs := left(l); len(dirs) > 0 {
		t.Errorf("cgroups of trials are left: %q", dirs)
	}
}

// A host whose memory cannot be read has no limit, and the run states it.
func TestRunsCgroupWithoutLimit(t *testing.T) {
	l, _ := newPlaced(t)
	l.config.Supply = guard.Supply{Memory: func() (guard.Amount, error) { return guard.Amount{}, errBroken }}
	outcome := l.ok()
	if want := "the run's cgroup has no limit that protects the host: " + errBroken.Error(); !slices.Contains(outcome.Caveats, want) {
		t.Errorf("caveats: %q, want %q", outcome.Caveats, want)
	}
}
