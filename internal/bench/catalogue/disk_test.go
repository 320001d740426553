package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/guard"
)

// diskHarness is a fake target that records its containers, with a page cache that can be dropped.
type diskHarness struct {
	engine.Engine
	driver    *fake.Driver
	clock     *fake.Clock
	isolation engine.Isolation
	created   []engine.Spec
	events    []string // programs and drops of the cache, in order
}

func (l *diskHarness) Info() engine.Info {
	info := l.Engine.Info()
	info.Isolation = l.isolation
	return info
}

func newDiskHarness(t *testing.T, targetName string) *diskHarness {
	t.Helper()
	l := &diskHarness{isolation: engine.SharedKernel}
	l.driver, l.Engine, l.clock = open(t, targetName)
	l.install(func(name string, args []string, b fake.Behaviour) fake.Behaviour {
		l.events = append(l.events, what(name, args))
		return b
	})
	return l
}

// install installs all programs, with a change of their behaviour.
func (l *diskHarness) install(change func(name string, args []string, b fake.Behaviour) fake.Behaviour) {
	for name, program := range imitations() {
		l.driver.Install(name, func(args []string, spec engine.Spec) fake.Behaviour {
			b := program(args, spec)
			if len(spec.Mounts) > 0 && spec.Mounts[0].Source != "" {
				// The file is a hole: it has a size, and none of it is in the page cache.
				file := filepath.Join(spec.Mounts[0].Source, "hole")
				if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 1<<20)); err != nil {
					b.Exit, b.Stderr = engine.Exit{Code: 1}, err.Error()
				}
			}
			return change(name, args, b)
		})
	}
}

// what describes the task of a program in a word.
func what(name string, args []string) string {
	switch o := optionsOf(args); filepath.Base(name) {
	case "sysbench":
		if mode := o["file-test-mode"]; mode != "" {
			return mode
		}
		return args[len(args)-1]
	case "fio":
		return strings.Join(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return !strings.HasPrefix(a, "--rw=") }), " ")
	default:
		return filepath.Base(name)
	}
}

func (l *diskHarness) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	l.created = append(l.created, spec)
	return l.Engine.Create(ctx, spec)
}

func (l *diskHarness) run(t *testing.T, name string, overrides bench.Params) result.Trial {
	t.Helper()
	trial := runOn(t, name, l, l.clock, overrides, func(c *runner.Config) {
		c.DropCaches = func(context.Context) error {
			l.events = append(l.events, "drop")
			return nil
		}
	})
	if left := l.driver.Leftovers(); len(left) > 0 {
		t.Errorf("%s leaves the containers %q", name, left)
	}
	return trial
}

// onVolumes are the benchmarks with the parameter on.
var onVolumes = []string{"performance.disk.read", "performance.disk.write", "performance.disk.throughput", "performance.disk.sqlite", "performance.disk.blog"}

// The container gets the volume that the parameter selects, and the trial records it.
func TestVolumes(t *testing.T) {
	for _, name := range onVolumes {
		for volume, want := range map[bench.Volume]struct {
			writable, mounted, bound bool
			says                     string
		}{
			bench.Rootfs:    {true, false, false, "the container's root file system"},
			bench.Tmpfs:     {false, true, false, "a tmpfs of the container"},
			bench.Bind:      {false, true, true, "a bind mount of "},
			bench.BindTmpfs: {false, true, true, "a bind mount of "},
		} {
			l := newDiskHarness(t, "fake/a")
			trial := l.run(t, name, bench.Params{"on": string(volume)})
			if trial.Status != result.OK {
				t.Errorf("%s on %s: %s because %s", name, volume, trial.Status, trial.Reason)
				continue
			}
			if location := trial.Conditions["files on"]; !strings.HasPrefix(location, want.says) || location == "a bind mount of " {
				t.Errorf("%s on %s records its files on %q", name, volume, location)
			}
			spec := l.created[0]
			if spec.Writable != want.writable || (len(spec.Mounts) == 1) != want.mounted {
				t.Errorf("%s on %s: writable is %v and the mounts are %v", name, volume, spec.Writable, spec.Mounts)
				continue
			}
			if want.mounted {
				m := spec.Mounts[0]
				if m.Target != "/data" || m.ReadOnly || (m.Source != "") != want.bound {
					t.Errorf("%s on %s: the mount %+v", name, volume, m)
				}
			}
		}
	}
}

// A target without the volume is skipped with its reason, and not run on another volume.
func TestUnsupportedVolumes(t *testing.T) {
	for volume, capability := range map[string]string{
		"rootfs": "writable-root", "tmpfs": "tmpfs", "bind": "bind-mount", "bind-tmpfs": "bind-mount-of-memory",
	} {
		for _, name := range onVolumes {
			l := newDiskHarness(t, "fake/a@no="+capability)
			checkEnd(t, name+" on "+volume, l.run(t, name, bench.Params{"on": volume}), result.Skipped, "taken away")
			if len(l.created) > 0 {
				t.Errorf("%s on %s makes %d containers", name, volume, len(l.created))
			}
		}
	}
}

func TestDiskValues(t *testing.T) {
	const request = 1e-5 // of the imitation of sysbench, in seconds
	for _, tt := range []struct {
		name  string
		given bench.Params
		want  map[string]float64
	}{
		{
			"performance.disk.read",
			bench.Params{"files": "4", "mib": "2", "requests": "1000"},
			map[string]float64{"SeqRead": 512 * request, "RndRead": 1000 * request},
		},
		{
			"performance.disk.write",
			bench.Params{"files": "4", "mib": "2", "requests": "1000", "fsync": "every=100"},
			map[string]float64{"SeqWrite": (512 + 4*5) * request, "SeqRewrite": (512 + 4*5) * request, "RndWrite": (1000 + 4*9) * request},
		},
		{
			"performance.disk.write",
			bench.Params{"files": "4", "mib": "2", "requests": "1000", "fsync": "random=100"},
			map[string]float64{"SeqWrite": 512 * request, "SeqRewrite": 512 * request, "RndWrite": (1000 + 4*9) * request},
		},
		{
			"performance.disk.write",
			bench.Params{"files": "4", "mib": "2", "requests": "1000", "fsync": "never", "existing": "empty"},
			map[string]float64{"SeqWrite": 512 * request, "SeqRewrite": 512 * request, "RndWrite": 1000 * request},
		},
		{
			"performance.disk.mount",
			bench.Params{"files": "4", "mib": "2"},
			map[string]float64{"Bind": 512 * request, "Rootfs": 512 * request, "BindTmpfs": 512 * request, "Tmpfs": 512 * request},
		},
		{
			"performance.disk.throughput",
			bench.Params{"mib": "512", "duration": "2s"},
			map[string]float64{"SeqWrite": 512 << 20, "SeqRead": fioBytesPerSecond, "RndRead": fioBytesPerSecond >> 12, "RndWrite": fioBytesPerSecond >> 12},
		},
		{"performance.disk.sqlite", bench.Params{"insertions": "17"}, map[string]float64{"TotalTime": sqliteTook.Seconds()}},
	} {
		// sysbench rounds its times to 0.1 ms.
		checkSamples(t, tt.name, run(t, tt.name, "fake/a", tt.given), tt.want, cmpopts.EquateApprox(1e-9, 0.5e-4))
	}
}

// The syncs are recorded. Sequential modes of the paper sync only at the end.
func TestSyncs(t *testing.T) {
	const write, mount = "performance.disk.write", "performance.disk.mount"
	for _, tt := range []struct{ name, given, says string }{
		{write, "end", "all files once, at the end"},
		{write, "every=100", "all files after every 100 writes, and at the end"},
		{write, "random=50", "all files at the end, and at random positions also after every 50 writes"},
		{write, "never", "none"},
		{mount, "end", "all files once, at the end"},
		{mount, "every=7", "all files after every 7 writes, and at the end"},
	} {
		overrides := bench.Params{"fsync": tt.given}
		if params, err := find(t, tt.name).Resolve(overrides, false); err != nil || params.Param("fsync") != tt.given {
			t.Errorf("%s with fsync=%s: %v, %v", tt.name, tt.given, params, err)
		}
		if condition := ok(t, tt.name, "fake/a", overrides).Conditions["syncs"]; condition != tt.says {
			t.Errorf("%s with fsync=%s records the syncs %q, want %q", tt.name, tt.given, condition, tt.says)
		}
	}
	for name, values := range map[string][]string{
		write: {"", "100", "always", "every", "every=0", "every=1000001", "random=x"},
		mount: {"random=100"},
	} {
		for _, value := range values {
			if _, err := find(t, name).Resolve(bench.Params{"fsync": value}, false); err == nil || !strings.Contains(err.Error(), "must be end, every=N") {
				t.Errorf("%s with fsync=%s: %v", name, value, err)
			}
		}
	}
	for name, want := range map[string]string{write: "random=100", mount: "end"} {
		if paper, err := find(t, name).Resolve(nil, true); err != nil || paper.Param("fsync") != want {
			t.Errorf("%s of the paper: %v, %v; want fsync=%s", name, paper, err, want)
		}
	}
}

// The files are written, or made again without data before each mode that needs them.
func TestExistingFiles(t *testing.T) {
	for mode, want := range map[string][]string{
		"written": {"seqwr", "seqrewr", "rndwr"},
		"empty":   {"seqwr", "busybox", "busybox", "seqrewr", "busybox", "busybox", "rndwr"},
	} {
		l := newDiskHarness(t, "fake/a")
		trial := l.run(t, "performance.disk.write", bench.Params{"existing": mode})
		if diff := cmp.Diff(want, l.events); trial.Status != result.OK || diff != "" {
			t.Errorf("existing=%s: %s because %q (-want +got):\n%s", mode, trial.Status, trial.Reason, diff)
		}
	}
}

// With cache=cold the cache is dropped right before each reading. With cache=warm it is never dropped.
func TestColdCache(t *testing.T) {
	for _, tt := range []struct {
		name, cache string
		want        []string
	}{
		{"performance.disk.read", "warm", []string{"prepare", "seqrd", "rndrd"}},
		{"performance.disk.read", "cold", []string{"prepare", "drop", "seqrd", "drop", "rndrd"}},
		{"performance.disk.throughput", "warm", []string{"--rw=write --rw=read --rw=randread --rw=randwrite"}},
		{"performance.disk.throughput", "cold", []string{"--rw=write", "drop", "--rw=read", "drop", "--rw=randread", "--rw=randwrite"}},
	} {
		for _, volume := range []string{"bind", "rootfs"} {
			l := newDiskHarness(t, "fake/a")
			trial := l.run(t, tt.name, bench.Params{"cache": tt.cache, "on": volume})
			checkEnd(t, tt.name, trial, result.OK, "")
			expect.Equal(t, fmt.Sprintf("%s, %s, on %s", tt.name, tt.cache, volume), tt.want, l.events)
			cache := trial.Conditions["page cache"]
			if want := volume == "bind" || tt.cache == "warm"; strings.HasPrefix(cache, tt.cache+": ") != want || strings.Contains(cache, "cannot be seen on rootfs") == want {
				t.Errorf("%s, %s, on %s: the recorded page cache is %q", tt.name, tt.cache, volume, cache)
			}
			if len(l.created) != 1 {
				t.Errorf("%s, %s, on %s: %d containers, want 1: the root file system belongs to its container", tt.name, tt.cache, volume, len(l.created))
			}
		}
	}
}

// The cache inside a sandbox is unknown and not called cold.
func TestColdCacheOfASandbox(t *testing.T) {
	for isolation, isKnown := range map[engine.Isolation]bool{
		engine.NoIsolation: true, engine.SharedKernel: true, engine.UserKernel: false, engine.VM: false, engine.Unknown: false,
	} {
		for _, volume := range []string{"bind", "rootfs"} {
			l := newDiskHarness(t, "fake/a")
			l.isolation = isolation
			trial := l.run(t, "performance.disk.read", bench.Params{"cache": "cold", "on": volume})
			if cache := trial.Conditions["page cache"]; trial.Status != result.OK || strings.Contains(cache, "the sandbox's own cache is unknown") == isKnown {
				t.Errorf("isolation %s, on %s: %s because %q, recorded as %q", isolation, volume, trial.Status, trial.Reason, cache)
			}
		}
	}
}

// A cold read is skipped if the files stay in the cache, or if they are not on the host.
func TestCacheStaysWarm(t *testing.T) {
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"in the cache", make([]byte, 1<<20), "1048576 bytes of the files are still in it after it was dropped"},
		{"not there", nil, "no data of the files has reached the host"},
	} {
		l := newDiskHarness(t, "fake/a")
		l.driver.Install("/usr/bin/sysbench", func(args []string, spec engine.Spec) fake.Behaviour {
			if err := os.WriteFile(filepath.Join(spec.Mounts[0].Source, "test_file.0"), tt.file, 0o600); err != nil {
				t.Error(err)
			}
			return fileio(args, spec)
		})
		trial := l.run(t, "performance.disk.read", bench.Params{"cache": "cold", "on": "bind"})
		checkEnd(t, tt.name, trial, result.Skipped, tt.want)
		if len(trial.Conditions["page cache"]) > 0 {
			t.Errorf("%s: the conditions are %v", tt.name, trial.Conditions)
		}
	}
}

// The trial records where the root file system keeps written files.
func TestRootFileSystems(t *testing.T) {
	for _, tt := range []struct {
		target    string
		isolation engine.Isolation
		want      string
	}{
		{"fake/a", engine.NoIsolation, "a directory of the run's disk, bound to /data"},
		{"fake/a", engine.SharedKernel, "the container's root file system: a layer of the engine's snapshotter"},
		{"fake/a@no=pull", engine.SharedKernel, "the container's root file system: an overlay on the run's disk"},
		{"fake/a", engine.UserKernel, "the container's root file system: files may stay in an overlay inside the sandbox"},
	} {
		l := newDiskHarness(t, tt.target)
		l.isolation = tt.isolation
		trial := l.run(t, "performance.disk.write", bench.Params{"on": "rootfs"})
		if location := trial.Conditions["files on"]; trial.Status != result.OK || location != tt.want {
			t.Errorf("%s, %s: %s because %q, its files are on %q", tt.target, tt.isolation, trial.Status, trial.Reason, location)
		}
	}
}

// A read that cannot be cold is skipped before any program runs.
func TestImpossibleColdCache(t *testing.T) {
	for _, name := range []string{"performance.disk.read", "performance.disk.throughput"} {
		for _, tt := range []struct {
			target string
			given  bench.Params
			want   string
		}{
			{"fake/a", bench.Params{"cache": "cold", "on": "tmpfs"}, "are always in memory"},
			{"fake/a", bench.Params{"cache": "cold", "on": "bind-tmpfs"}, "are always in memory"},
			{"fake/a@no=exec", bench.Params{"cache": "cold", "on": "bind"}, "taken away"},
		} {
			l := newDiskHarness(t, tt.target)
			checkEnd(t, name, l.run(t, name, tt.given), result.Skipped, tt.want)
			if len(l.events) > 0 {
				t.Errorf("%s with %v: after %q", name, tt.given, l.events)
			}
		}
		checkEnd(t, name+" without permission", run(t, name, "fake/a", bench.Params{"cache": "cold"}), result.Skipped, "not allowed")
		l := newDiskHarness(t, "fake/a")
		trial := runOn(t, name, l, l.clock, bench.Params{"cache": "cold"}, func(c *runner.Config) {
			c.DropCaches = func(context.Context) error { return errors.New("no way") }
		})
		checkEnd(t, name+" with a cache that stays", trial, result.Failed, "no way")
		if len(trial.Conditions["page cache"]) > 0 {
			t.Errorf("%s with a cache that stays: the conditions are %v", name, trial.Conditions)
		}
	}
}

// performance.disk.mount leaves out a volume that the target lacks or for which the host has no space. It measures the others
// and records the reason.
func TestMissingMounts(t *testing.T) {
	const gib = 1 << 30
	room := func(disk, memory int64) func(*runner.Config) {
		return func(c *runner.Config) {
			c.Supply.Disk = func(dir string) (guard.Amount, error) {
				if dir == c.Data {
					return guard.Amount{Free: disk, Total: disk}, nil
				}
				return guard.Amount{Free: gib, Total: gib}, nil
			}
			c.Supply.Memory = func() (guard.Amount, error) { return guard.Amount{Free: memory, Total: memory}, nil }
		}
	}
	metrics := []string{"Bind", "Rootfs", "BindTmpfs", "Tmpfs"}
	for _, tt := range []struct {
		name, target string
		config       func(*runner.Config)
		missing      []string
		why          string
	}{
		{"without tmpfs", "fake/a@no=tmpfs", func(*runner.Config) {}, []string{"Tmpfs"}, "taken away"},
		{"without a writable root", "fake/a@no=writable-root", func(*runner.Config) {}, []string{"Rootfs"}, "taken away"},
		{"without memory on the host", "fake/a", func(c *runner.Config) { c.Memory = "" }, []string{"BindTmpfs"}, "no file system in memory"},
		{"with room for all", "fake/a", room(gib, gib), nil, ""},
		{"with little memory", "fake/a", room(gib, 96<<20), []string{"BindTmpfs", "Tmpfs"}, "files with 96.0 MiB"},
	} {
		l := newDiskHarness(t, tt.target)
		trial := runOn(t, "performance.disk.mount", l, l.clock, nil, tt.config)
		checkEnd(t, tt.name, trial, result.OK, "")
		for _, metric := range metrics {
			n, condition := 1, trial.Conditions[metric+" on"]
			if slices.Contains(tt.missing, metric) {
				n = 0
			}
			if notMeasured := strings.HasPrefix(condition, "not measured: ") && strings.Contains(condition, tt.why); len(trial.Values(metric)) != n || notMeasured == (n == 1) {
				t.Errorf("%s: %s has %d values, want %d; the condition is %q", tt.name, metric, len(trial.Values(metric)), n, condition)
			}
		}
	}
}

// Direct I/O leaves no files in the page cache. The imitated fio writes none there; a file that the test writes is in it.
func TestDirect(t *testing.T) {
	for _, volume := range []string{"tmpfs", "bind-tmpfs"} {
		l := newDiskHarness(t, "fake/a")
		checkEnd(t, "direct on "+volume, l.run(t, "performance.disk.throughput", bench.Params{"direct": "1", "on": volume}), result.Skipped, "exist only in memory")
	}
	l := newDiskHarness(t, "fake/a")
	trial := l.run(t, "performance.disk.throughput", bench.Params{"direct": "1", "on": "rootfs"})
	if trial.Status != result.OK || !strings.Contains(trial.Conditions["direct I/O"], "cannot be seen") {
		t.Errorf("direct on rootfs: %s because %q, recorded as %q", trial.Status, trial.Reason, trial.Conditions["direct I/O"])
	}
	l = newDiskHarness(t, "fake/a")
	l.driver.Install("/usr/bin/fio", func(args []string, spec engine.Spec) fake.Behaviour {
		if !slices.Contains(args, "--direct=1") {
			t.Errorf("fio lacks the option: %q", args)
		}
		if err := os.WriteFile(filepath.Join(spec.Mounts[0].Source, "touchstone.fio"), make([]byte, 1<<20), 0o600); err != nil {
			t.Error(err)
		}
		return fio(args, spec)
	})
	trial = l.run(t, "performance.disk.throughput", bench.Params{"direct": "1", "mib": "1"})
	checkEnd(t, "ignored direct I/O", trial, result.Skipped, "the target ignores it")
}

// A benchmark needs the space of its files, on the volume that holds them.
func TestSpace(t *testing.T) {
	exactly := func(s bench.Space) [2]bench.Space { return [2]bench.Space{s, s} }
	for _, tt := range []struct {
		name  string
		given bench.Params
		want  [2]bench.Space // minimum and maximum
	}{
		{"performance.disk.read", bench.Params{"files": "128", "mib": "16"}, exactly(bench.Space{Disk: 2 << 30})},
		{"performance.disk.read", bench.Params{"files": "128", "mib": "16", "on": "bind-tmpfs"}, exactly(bench.Space{Memory: 2 << 30})},
		{"performance.disk.write", bench.Params{"files": "3", "mib": "1", "on": "rootfs"}, exactly(bench.Space{Disk: 3 << 20})},
		{"performance.disk.write", bench.Params{"files": "3", "mib": "1", "on": "tmpfs"}, exactly(bench.Space{Tmpfs: 3 << 20})},
		{"performance.disk.mount", bench.Params{"files": "3", "mib": "1"}, exactly(bench.Space{Disk: 3 << 20})},
		{"performance.disk.throughput", bench.Params{"mib": "16384"}, exactly(bench.Space{Disk: 16 << 30})},
		{"performance.disk.throughput", bench.Params{"mib": "16384", "on": "bind-tmpfs"}, exactly(bench.Space{Memory: 16 << 30})},
		{"performance.disk.sqlite", bench.Params{"insertions": "2500"}, [2]bench.Space{{Disk: 2500 * 100}, {Disk: 16 << 20}}},
		{"performance.disk.sqlite", bench.Params{"insertions": "2500", "on": "tmpfs"}, [2]bench.Space{{Tmpfs: 2500 * 100}, {Tmpfs: 16 << 20}}},
		{"performance.disk.blog", bench.Params{"on": "bind-tmpfs"}, exactly(bench.Space{Memory: 30 << 20})},
	} {
		got, minimum, maximum := find(t, tt.name).Needs(resolved(t, tt.name, tt.given)).Space, tt.want[0], tt.want[1]
		if got.Disk < minimum.Disk || got.Disk > maximum.Disk || got.Memory < minimum.Memory || got.Memory > maximum.Memory || got.Tmpfs < minimum.Tmpfs || got.Tmpfs > maximum.Tmpfs {
			t.Errorf("%s with %v takes %+v, want %+v to %+v", tt.name, tt.given, got, minimum, maximum)
		}
	}
}

// A sweep writes and reads with each size of a request, in its order, after the other runs.
func TestSweep(t *testing.T) {
	for cache, want := range map[string][]string{
		"warm": {"--rw=write --rw=read --rw=randread --rw=randwrite --rw=write --rw=read --rw=write --rw=read"},
		"cold": {"--rw=write", "drop", "--rw=read", "drop", "--rw=randread", "--rw=randwrite", "--rw=write", "drop", "--rw=read", "--rw=write", "drop", "--rw=read"},
	} {
		l := newDiskHarness(t, "fake/a")
		trial := mustBeOK(t, l.run(t, "performance.disk.throughput", bench.Params{"mib": "512", "duration": "2s", "sweep": "4,16384", "cache": cache}))
		expect.Equal(t, cache, want, l.events)
		read := float64(512 << 20)
		if cache == "warm" {
			read = fioBytesPerSecond // again and again
		}
		if w, r := trial.Values("WriteSweep"), trial.Values("ReadSweep"); !slices.Equal(w, []float64{512 << 20, 512 << 20}) || !slices.Equal(r, []float64{read, read}) {
			t.Errorf("%s: a sweep of two sizes writes at %v and reads at %v", cache, w, r)
		}
		if len(trial.Values("SeqWrite")) != 1 {
			t.Errorf("%s: SeqWrite is %v", cache, trial.Values("SeqWrite"))
		}
	}
	params, err := find(t, "performance.disk.throughput").Resolve(nil, true)
	if err != nil || len(strings.Split(params["sweep"], ",")) != 13 {
		t.Errorf("the paper's sweep is %q, %v; want 13 sizes from 4 KiB to 16 MiB", params["sweep"], err)
	}
	// A request that is larger than the file is refused before a program runs.
	for reason, params := range map[string]bench.Params{"leave them out of sweep": {"mib": "1", "sweep": "4,2048"}, fmt.Sprint(2 << 20): {"mib": "1", "block": "2048"}} {
		checkEnd(t, "requests larger than the file", run(t, "performance.disk.throughput", "fake/a", params), result.Failed, reason)
	}
}

// Wrong output or a failure of any program of the image fails the trial, without samples and with the standard error. Package workload
// tests what the output may be.
func TestWrongOutputFails(t *testing.T) {
	bends := map[string]func(*fake.Behaviour){
		"nothing":      func(b *fake.Behaviour) { b.Stdout = "" },
		"garbage":      func(b *fake.Behaviour) { b.Stdout = "\x00\xff{\"metric\": gar\n" },
		"a half":       func(b *fake.Behaviour) { b.Stdout = b.Stdout[:len(b.Stdout)/2] },
		"twice":        func(b *fake.Behaviour) { b.Stdout += b.Stdout },
		"a warning":    func(b *fake.Behaviour) { b.Stdout = "WARNING: something is odd\n" + b.Stdout },
		"more":         func(b *fake.Behaviour) { b.Stdout += "what is this?" },
		"a flood":      func(b *fake.Behaviour) { b.Stdout += strings.Repeat("x", bench.MaxOutput) + "\n" },
		"an exit code": func(b *fake.Behaviour) { b.Exit, b.Stderr = engine.Exit{Code: 1}, "No space left on device\n" },
		"a signal":     func(b *fake.Behaviour) { b.Exit = engine.Exit{Signal: 9} },
	}
	tested := 0
	for _, b := range onFake() {
		for _, overrides := range []bench.Params{nil, {"cache": "cold"}} {
			if _, err := b.Resolve(overrides, false); err != nil || b.Image != bench.WorkloadImage || b.Suite() != "performance" && b.Suite() != "limits" {
				continue
			}
			// A call of number 0 is bent by nothing, and counts the calls with output.
			calls := 0
			bent := func(number int, bend func(*fake.Behaviour)) result.Trial {
				l := newDiskHarness(t, "fake/a")
				calls = 0
				l.install(func(_ string, _ []string, b fake.Behaviour) fake.Behaviour {
					if b.Stdout != "" {
						if calls++; calls == number {
							bend(&b)
						}
					}
					return b
				})
				return l.run(t, b.Name, overrides)
			}
			checkEnd(t, b.Name+" of good output", bent(0, nil), result.OK, "")
			tested += calls
			last := calls
			for what, bend := range bends {
				for number := range last {
					if number > 0 && number < last-1 || number < last-1 && (what == "twice" || what == "a warning") {
						continue // the first and the last output; the preparation of files may say more
					}
					trial := bent(number+1, bend)
					checkEnd(t, fmt.Sprintf("%s with %v, %s in output %d", b.Name, overrides, what, number+1), trial, result.Failed, "")
					if what == "an exit code" && !strings.Contains(trial.Output, "No space left") {
						t.Errorf("%s, %s: the output %.100q lacks the standard error", b.Name, what, trial.Output)
					}
				}
			}
		}
	}
	if tested < 12 {
		t.Errorf("only %d outputs were tested", tested)
	}
}
