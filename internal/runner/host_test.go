package runner_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// program is the path of a program that a test installs.
const program = "/usr/bin/program"

// runsProgram runs it until it exits.
func runsProgram(ctx context.Context, t bench.Trial) error {
	text, err := bench.InContainer(ctx, t, t.Spec(program))
	if err == nil {
		t.Record("Value", float64(len(text)))
	}
	return err
}

// needsImage makes all work of the harness need the workload image, which must be pulled.
func (l *harness) needsImage() {
	l.config.Images[bench.WorkloadImage] = runner.Image{Rootfs: "/", Ref: "registry/" + string(bench.WorkloadImage)}
	for i := range l.config.Work {
		l.config.Work[i].Benchmark.Image = bench.WorkloadImage
	}
}

// The pull of an image is not part of any trial. The image is removed at the end of the run, which the harness checks.
func TestImageIsPulledOnce(t *testing.T) {
	l := newHarness(t, "fake/a@pull=20s,create=1ms,start=1ms,delete=1ms", "fake/b@pull=20s,create=1ms,start=1ms,delete=1ms")
	var reports []string
	l.config.Pulling = func(target string, image bench.Image) { reports = append(reports, target[:6]+" "+string(image)) }
	l.config.Stop.Min = 3
	l.work("test.one.x", live)
	l.work("test.two.x", live)
	l.needsImage()
	l.ok()
	slices.Sort(reports)
	expect.Equal(t, "pulled", []string{"fake/a workload", "fake/b workload"}, reports)
	for _, trial := range l.trials {
		if trial.Status != result.OK || trial.Elapsed > time.Second || trial.Phases[0].Start != 0 {
			t.Errorf("trial %d is %s and took %v with %v: %s", trial.Seq, trial.Status, trial.Elapsed, trial.Phases, trial.Reason)
		}
	}
}

func TestPullFails(t *testing.T) {
	for _, tt := range []struct {
		target string
		want   []result.Status
		reason string // a part of the first trial's reason
		cut    string // a part
	}{
		{"fake/a@fail=pull#1", []result.Status{result.Failed, result.OK, result.OK}, "get image workload ready: pull registry/workload: scripted fault", ""},
		{"fake/a@hang=pull", []result.Status{result.Timeout, result.Timeout, result.Skipped}, "the pull of image workload took longer than its limit of 5m0s", "given up"},
		{"fake/a@pull=4m", []result.Status{result.OK, result.OK, result.OK}, "", ""}, // longer than CallLimit
		{"fake/a@no=pull", []result.Status{result.Skipped}, "pull: taken away", ""},
	} {
		t.Run(tt.target, func(t *testing.T) {
			l := newHarness(t, tt.target)
			l.config.Stop.Min = 3
			l.work("test.one.x", live)
			l.needsImage()
			outcome := l.ok()
			var got []result.Status
			for _, trial := range l.trials {
				got = append(got, trial.Status)
			}
			if !slices.Equal(got, tt.want) || !strings.Contains(l.trials[0].Reason, tt.reason) {
				t.Errorf("trials are %v because %q, want %v because %q", got, l.trials[0].Reason, tt.want, tt.reason)
			}
			if cut := strings.Join(outcome.Caveats, "\n"); !strings.Contains(cut, tt.cut) || tt.cut == "" && cut != "" {
				t.Errorf("the run says %q, want %q", cut, tt.cut)
			}
		})
	}
}

// An image that the engine does not remove is a caveat of the run.
func TestRemovalOfPulledImageFails(t *testing.T) {
	l := newHarness(t, "fake/a@fail=remove")
	l.work("test.one.x", live)
	l.needsImage()
	outcome, err := runner.Run(t.Context(), l.config)
	if err != nil || len(outcome.Caveats) != 1 || !strings.Contains(outcome.Caveats[0], "the image registry/workload stays with fake/a@fail=remove: remove image") {
		t.Errorf("Run() = %+v, %v", outcome, err)
	}
}

func TestInterruptedPull(t *testing.T) {
	l := newHarness(t, "fake/a@pull=20s")
	l.work("test.one.x", live)
	l.needsImage()
	ctx, cancel := context.WithCancelCause(t.Context())
	l.config.Pulling = func(string, bench.Image) { cancel(errBroken) }
	outcome, err := l.run(ctx)
	if err != nil || !outcome.Interrupted || len(l.trials) > 0 {
		t.Errorf("Run() = %+v, %v with the trials %v", outcome, err, spell(l.trials))
	}
}

// Benchmarks whose image is missing are skipped with the reason, and the others run.
func TestMissingImage(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.one.x", live)
	l.work("test.two.x", live)
	l.config.Work[0].Benchmark.Image = bench.WorkloadImage
	l.work("test.three.x", live)
	l.config.Work[2].Benchmark.Image = "mine.tar"
	l.config.Images[bench.WorkloadImage] = runner.Image{Err: &engine.UnsupportedError{What: "the workload image", Reason: "no mirror answers", Advice: "load one"}}
	l.ok()
	want := map[string]string{
		"test.one.x": "the workload image: no mirror answers; load one", "test.two.x": "",
		"test.three.x": "image mine.tar: it was not prepared for this run",
	}
	got := map[string]string{}
	for _, trial := range l.trials {
		got[trial.Benchmark] = trial.Reason
		if (trial.Status == result.Skipped) != (trial.Reason != "") {
			t.Errorf("%s is %s because %q", trial.Benchmark, trial.Status, trial.Reason)
		}
	}
	expect.Equal(t, "reasons", want, got)
}

func TestPrograms(t *testing.T) {
	for _, tt := range []struct {
		name      string
		behaviour fake.Behaviour
		kills     int64 // by the kernel, out of memory
		status    result.Status
		reason    string // a part
	}{
		{name: "maximum output", behaviour: fake.Behaviour{Stdout: strings.Repeat("x", bench.MaxOutput)}, status: result.OK},
		{
			name: "too much output", behaviour: fake.Behaviour{Stdout: strings.Repeat("x", bench.MaxOutput+1)},
			status: result.Failed, reason: "a program wrote more than 1 MiB of output",
		},
		{
			name: "too much on standard error", behaviour: fake.Behaviour{Stderr: strings.Repeat("x", 2*bench.MaxOutput)},
			status: result.Failed, reason: "a program wrote more than 1 MiB of output",
		},
		{
			name: "killed", behaviour: fake.Behaviour{Exit: engine.Exit{Signal: 9}}, kills: 1,
			status: result.Failed, reason: "killed by signal 9 (killed); during the trial the kernel killed processes of this host because it was out of memory (1): if the trial was not meant to cause this, set smaller",
		},
		{
			name: "killed by another program", behaviour: fake.Behaviour{Exit: engine.Exit{Signal: 9}},
			status: result.Failed, reason: "killed by signal 9 (killed)",
		},
		{name: "another process killed", kills: 1, status: result.OK},
		{name: "hanging", behaviour: fake.Behaviour{Took: 100 * time.Hour}, status: result.Timeout, reason: "the trial took longer than its limit of 1h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			var kills int64
			l.config.OOMKills = func() (int64, error) { return kills, nil }
			l.driver.Install(program, func([]string, engine.Spec) fake.Behaviour {
				kills += tt.kills
				return tt.behaviour
			})
			l.work("test.one.x", runsProgram)
			l.ok()
			trial := l.only()
			if trial.Status != tt.status || !strings.Contains(trial.Reason, tt.reason) || strings.Contains(trial.Reason, "out of memory") != strings.Contains(tt.reason, "out of memory") {
				t.Errorf("%s because %q, want %s because %q", trial.Status, trial.Reason, tt.status, tt.reason)
			}
			if len(trial.Samples) > 0 != (tt.status == result.OK) || len(trial.Output) > 8<<10 {
				t.Errorf("it has the samples %v and %d bytes of output", trial.Samples, len(trial.Output))
			}
		})
	}
}

// Too much output ends the trial and its calls, even if the benchmark ignores it.
//
// Invariant whole-output.
func TestTooMuchOutputEndsTheTrial(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		w := t.Watch()
		for range bench.MaxOutput/1000 + 1 {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return err
			}
		}
		if n := len(w.Bytes()); n != bench.MaxOutput {
			l.Errorf("%d bytes are kept, want %d", n, bench.MaxOutput)
		}
		var flood runner.OutputLimitError
		if _, _, err := t.Create(ctx, t.Spec(probe.Ready()...)); !errors.As(err, &flood) {
			l.Errorf("a call after the flood: %v", err)
		}
		return nil
	})
	l.ok()
	if trial := l.only(); trial.Status != result.Failed || !strings.HasPrefix(trial.Reason, runner.OutputLimitError{}.Error()) {
		t.Errorf("%s because %q", trial.Status, trial.Reason)
	}
}

func TestConditions(t *testing.T) {
	l := newHarness(t, "fake/a")
	l.config.WorkloadCPUs = "2-3"
	l.work("test.one.x", func(_ context.Context, t bench.Trial) error {
		t.Condition("cache", "warm")
		t.Condition("cache", "cold\nindeed")
		if got := t.Spec("/probe").Resources.CPUSet; got != "2-3" {
			l.Errorf("a container is on the CPUs %q", got)
		}
		return nil
	})
	l.work("test.two.x", func(_ context.Context, t bench.Trial) error {
		for i := range 40 {
			t.Condition(strings.Repeat("x", i+1), "")
		}
		return nil
	})
	l.ok()
	expect.Equal(t, "conditions", map[string]string{"cache": "cold indeed", "cpus": "2-3"}, l.trials[0].Conditions)
	if trial := l.trials[1]; trial.Status != result.Failed || !strings.Contains(trial.Reason, "more than 32 conditions") {
		t.Errorf("%s because %q", trial.Status, trial.Reason)
	}
}

// The plan's limits are the limits of each container, and conditions of the trial. They distinguish results.
func TestLimitsOfContainers(t *testing.T) {
	for _, tt := range []struct {
		name       string
		limits     engine.Resources
		cell       string
		want       engine.Resources
		conditions map[string]string
	}{
		{"none", engine.Resources{}, "", engine.Resources{CPUSet: "2-3"}, map[string]string{"cpus": "2-3"}},
		{
			"all",
			engine.Resources{CPU: 1.5, Memory: 4 << 30, PIDs: 1_000_000, CPUSet: "2"},
			"limits.cpus=1.5 limits.cpuset=2 limits.memory=4GiB limits.pids=1000000",
			engine.Resources{CPU: 1.5, Memory: 4 << 30, PIDs: 1_000_000, CPUSet: "2"},
			map[string]string{"cpus": "2", "CPU limit": "1.5 CPUs", "memory limit": "4096 MiB", "process limit": "1000000"},
		},
		{
			"more CPUs than the machine has",
			engine.Resources{CPU: 5},
			"limits.cpus=5",
			engine.Resources{CPUSet: "2-3"},
			map[string]string{"cpus": "2-3", "CPU limit": "none: this machine has 4 CPUs, and the plan's limit is 5"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newHarness(t, "fake/a")
			l.config.WorkloadCPUs, l.config.CPUs = "2-3", 4
			l.work("test.one.x", func(_ context.Context, t bench.Trial) error {
				if got := t.Spec("/probe").Resources; got != tt.want {
					l.Errorf("a container has the limits %+v, want %+v", got, tt.want)
				}
				return nil
			})
			l.config.Work[0].Limits = tt.limits
			l.ok()
			if trial := l.only(); trial.Params != tt.cell {
				t.Errorf("the trial's parameters are %q, want %q", trial.Params, tt.cell)
			}
			expect.Equal(t, "conditions", tt.conditions, l.trials[0].Conditions)
		})
	}
}

func TestDropCachesNeedsPermission(t *testing.T) {
	for _, tt := range []struct {
		drop   func(context.Context) error
		status result.Status
		reason string
	}{
		{nil, result.Skipped, "a cold page cache: the page cache belongs to the whole host, and dropping it was not allowed; allow it with --drop-caches"},
		{func(context.Context) error { return nil }, result.OK, ""},
		{func(context.Context) error { return errBroken }, result.Failed, errBroken.Error()},
		{func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); bounded {
				return errors.New("the limit is not by the fake clock")
			}
			return nil
		}, result.OK, ""},
	} {
		l := newHarness(t, "fake/a")
		l.config.DropCaches = tt.drop
		l.work("test.one.x", func(ctx context.Context, t bench.Trial) error { return t.Storage.DropCaches(ctx) })
		l.ok()
		if trial := l.only(); trial.Status != tt.status || !strings.HasPrefix(trial.Reason, tt.reason) || len(trial.Phases) > 0 {
			t.Errorf("%s because %q, with the phases %v; want %s because %q", trial.Status, trial.Reason, trial.Phases, tt.status, tt.reason)
		}
	}
}

func TestScratchInMemory(t *testing.T) {
	memory := t.TempDir()
	for _, exists := range []bool{true, false} {
		l := newHarness(t, "fake/a")
		if exists {
			l.config.Memory = memory
		}
		var dirs []string
		l.work("test.one.x", func(_ context.Context, t bench.Trial) error {
			for _, m := range []bench.Medium{bench.Memory, bench.Disk, bench.Memory} {
				dir, err := t.Storage.Scratch(m)
				if err != nil {
					return err
				}
				dirs = append(dirs, dir)
			}
			return nil
		})
		if !exists {
			l.ends(result.Skipped, "no file system in memory")
			continue
		}
		if trial := l.ends(result.OK, ""); len(dirs) != 3 || !strings.HasPrefix(dirs[0], memory) || !strings.HasPrefix(dirs[1], l.config.Data) ||
			filepath.Dir(dirs[0]) != filepath.Dir(dirs[2]) || dirs[0] == dirs[2] {
			t.Errorf("%s: the directories are %q", trial.Reason, dirs)
		}
		if left, err := os.ReadDir(memory); len(left) > 0 || err != nil {
			t.Errorf("left in memory: %v, %v", left, err)
		}
	}
}

// networked is a fake engine with a network. The host's end of the network is elsewhere.
type networked struct {
	engine.Engine
	link func() (engine.Link, error)
}

func (n networked) Supports(c engine.Capability) error {
	if c == engine.NetworkBridge {
		return nil
	}
	return n.Engine.Supports(c)
}

func (n networked) Link(context.Context) (engine.Link, error) { return n.link() }

// hostEnd imitates the native engine at the host's end, and keeps the specs of its containers.
type hostEnd struct {
	*placed
	asked *[]engine.Spec
	err   error
}

func (h hostEnd) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	*h.asked = append(*h.asked, spec)
	if h.err != nil {
		return nil, h.err
	}
	spec.Join = ""
	return h.Engine.Create(ctx, spec)
}

// hostHarness is a harness with a network and a host's end.
func hostHarness(t *testing.T) (*harness, *placed, *hostEnd) {
	l, target := newPlaced(t)
	link := engine.Link{Namespace: "/proc/7/ns/net", Host: netip.MustParseAddr("192.0.2.1")}
	target.Engine = networked{l.config.Targets[0].Engine.(*placed).Engine, func() (engine.Link, error) { return link, nil }}
	l.config.Targets[0].Engine = struct {
		*placed
		engine.Networker
	}{target, target.Engine.(engine.Networker)}
	e, err := l.driver.Open(t.Context(), parsed(t, "fake/host"), engine.Session{RunID: l.config.RunID})
	must.Do(t, err)
	host := &hostEnd{placed: &placed{Engine: e, place: func(string) error { return nil }}, asked: new([]engine.Spec)}
	l.config.Host, l.config.HostCPUs = host, "0"
	return l, target, host
}

// A process at the host's end starts in a cgroup beside the trial's, so that its cost does not count. It is removed after the
// trial, however that ends, which the harness checks.
//
// Invariant peer-cost: A peer process on the host does not count towards the target's cost.
func TestHostEnd(t *testing.T) {
	for _, bad := range []bool{false, true} {
		l, target, host := hostHarness(t)
		var groups []string
		l.config.Work[0].Benchmark.Run = func(ctx context.Context, t bench.Trial) error {
			spec := t.Spec(probe.Ready()...)
			spec.Resources.CPUSet = "5"
			c, err := t.Network.CreateHost(ctx, spec)
			if err != nil {
				return err
			}
			groups = left(l)
			if bad {
				return errBroken
			}
			return c.Start(ctx)
		}
		l.ok()
		if trial := l.only(); (trial.Status == result.OK) == bad || trial.Conditions["cpus of the host's end"] != "0" || len(trial.Phases) > 0 {
			t.Errorf("%s because %q under %v with the phases %v", trial.Status, trial.Reason, trial.Conditions, trial.Phases)
		}
		request := (*host.asked)[0]
		if request.Join != "/proc/7/ns/net" || request.Network != engine.HostNet || request.Resources.CPUSet != "0" {
			t.Errorf("the host's engine was asked for %+v", request)
		}
		top := "/" + engine.Prefix + l.config.RunID
		expect.Equal(t, "the host's engine was placed in", []string{top + "/t1-host", ""}, host.groups)
		expect.Equal(t, "the target was placed in", []string{top + "/t1", top + "/t1", ""}, target.groups)
		if !slices.ContainsFunc(groups, func(dir string) bool { return strings.HasSuffix(dir, "/t1-host") }) || len(left(l)) > 0 {
			t.Errorf("cgroups were %q, and left are %q", groups, left(l))
		}
	}
}

func TestHostEndFails(t *testing.T) {
	create := func(ctx context.Context, t bench.Trial) error {
		_, err := t.Network.CreateHost(ctx, t.Spec(probe.Ready()...))
		return err
	}
	for name, spoil := range map[string]func(*hostEnd){
		"not created":     func(h *hostEnd) { h.err = errBroken },
		"not placed back": func(h *hostEnd) { h.place = notBack },
	} {
		t.Run(name, func(t *testing.T) {
			l, _, host := hostHarness(t)
			spoil(host)
			l.config.Work[0].Benchmark.Run = create
			if trial := l.ends(result.Failed, ""); trial.Reason != errBroken.Error() || len(left(l)) > 0 {
				t.Errorf("because %q, left are %q", trial.Reason, left(l))
			}
		})
	}
	t.Run("no network", func(t *testing.T) {
		l := newHarness(t, "fake/a")
		l.work("test.one.x", create)
		l.ends(result.Skipped, "bridged network: fake containers have no network")
	})
}

// accountant is an engine that reports the usage of all processes of the run.
type accountant struct{ networked }

func (accountant) Usage() engine.Usage { return engine.Usage{CPU: time.Second} }

// Without cgroups the usage would include the programs at the host's end.
func TestHostEndWithoutCgroups(t *testing.T) {
	l := newHarness(t, "fake/a")
	link := func() (engine.Link, error) { return engine.Link{Namespace: "/proc/7/ns/net"}, nil }
	target := accountant{networked{l.config.Targets[0].Engine, link}}
	l.config.Targets[0].Engine = target
	l.config.Host = hostEnd{placed: &placed{Engine: target.Engine, place: func(string) error { return nil }}, asked: new([]engine.Spec)}
	l.work("test.one.x", func(ctx context.Context, t bench.Trial) error {
		if _, err := t.Cost.Usage(); err != nil {
			l.Errorf("the cost before: %v", err)
		}
		if _, err := t.Network.CreateHost(ctx, t.Spec(probe.Ready()...)); err != nil {
			return err
		}
		_, err := t.Cost.Usage()
		return err
	})
	l.ends(result.Skipped, "the cost to the host: without cgroups it would include the programs outside the target")
}
