package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// unpack writes a fixture to a directory that serves as the root file system.
func unpack(t *testing.T, name string) (root string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	must.Do(t, err)
	root = t.TempDir()
	must.Do(t, txtar.Write(archive, root))
	return root
}

func TestDetect(t *testing.T) {
	tests := []struct {
		fixture string
		mode    Mode
		where   map[string]string // controller → mount point; "" without one
		named   string            // mount point of name=systemd
		joined  []string
	}{
		{
			fixture: "v2-systemd", mode: V2,
			where:  map[string]string{"cpu": "/sys/fs/cgroup", "memory": "/sys/fs/cgroup", "pids": "/sys/fs/cgroup", "cpuset": "/sys/fs/cgroup", "cpuacct": "", "freezer": ""},
			joined: []string{"/sys/fs/cgroup"},
		},
		{
			fixture: "v2-with-net-cls", mode: V2,
			where:  map[string]string{"memory": "/sys/fs/cgroup", "net_cls": "/opt/vpn client/net_cls"},
			joined: []string{"/sys/fs/cgroup"},
		},
		{
			fixture: "hybrid-systemd", mode: Hybrid,
			where: map[string]string{
				"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "cpuset": "/sys/fs/cgroup/cpuset",
				"memory": "/sys/fs/cgroup/memory", "pids": "/sys/fs/cgroup/pids", "freezer": "/sys/fs/cgroup/freezer",
				"devices": "/sys/fs/cgroup/devices", "net_prio": "/sys/fs/cgroup/net_cls,net_prio", "rdma": "/sys/fs/cgroup/rdma",
			},
			named: "/sys/fs/cgroup/systemd",
			joined: []string{
				"/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/freezer",
				"/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids",
			},
		},
		{
			fixture: "hybrid-split", mode: Hybrid,
			where: map[string]string{
				"cpu": "/sys/fs/cgroup/cpu", "cpuacct": "/sys/fs/cgroup/cpuacct", "cpuset": "/sys/fs/cgroup/cpuset",
				"memory": "/sys/fs/cgroup/memory", "pids": "/sys/fs/cgroup/pids", "freezer": "/sys/fs/cgroup/freezer",
				"devices": "/sys/fs/cgroup/devices", "hugetlb": "/sys/fs/cgroup/unified",
			},
			named: "/sys/fs/cgroup/systemd",
			joined: []string{
				"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/memory",
				"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified",
			},
		},
		{
			fixture: "v1-comounted", mode: V1,
			where:  map[string]string{"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "memory": "/sys/fs/cgroup/memory", "pids": ""},
			named:  "/sys/fs/cgroup/systemd",
			joined: []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu,cpuacct"},
		},
		{fixture: "none", mode: None, where: map[string]string{"cpu": ""}},
	}
	for _, tt := range tests {
		t.Run(tt.fixture, func(t *testing.T) {
			root := unpack(t, tt.fixture)
			h, err := Detect(root)
			must.Do(t, err)
			if h.Mode != tt.mode {
				t.Errorf("mode = %q, want %q", h.Mode, tt.mode)
			}
			for controller, want := range tt.where {
				m, ok := h.Controller(controller)
				if got := strings.TrimPrefix(m.Dir, root); got != want || ok != (want != "") {
					t.Errorf("controller %s is at %q (%v), want %q", controller, got, ok, want)
				}
			}
			var name string
			var controllers []string
			for _, m := range h.Mounts {
				dir := strings.TrimPrefix(m.Dir, root)
				if m.Name == "systemd" {
					name = dir
				}
				if m.joined() {
					controllers = append(controllers, dir)
				}
			}
			if name != tt.named {
				t.Errorf("name=systemd is at %q, want %q", name, tt.named)
			}
			if diff := cmp.Diff(tt.joined, controllers); diff != "" {
				t.Errorf("hierarchies that processes join (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetectWithoutProc(t *testing.T) {
	h, err := Detect(t.TempDir())
	if err != nil || h.Mode != None {
		t.Errorf("Detect = %+v, %v; want mode none", h, err)
	}
	_, err = h.Create("/touchstone-x")
	if !errors.Is(err, errNothingMounted) {
		t.Errorf("Create = %v, want %v", err, errNothingMounted)
	}
}

func TestBase(t *testing.T) {
	const session = "/user.slice/user-1000.slice/user@1000.service/run-1.scope"
	tests := []struct {
		name  string
		mount Mount
		own   string
		want  string
	}{
		{"root may write everywhere", Mount{V2: true, root: "/"}, "/init.scope", "/"},
		{"group of another namespace", Mount{V2: true, root: "/", Dir: "missing"}, "/../../a", ""},
		{"own group is not there", Mount{V2: true, root: "/", Dir: "missing"}, session, ""},
		{"v1 cannot be delegated", Mount{root: "/", Dir: "missing", Controllers: []string{"cpu"}}, session, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.mount.Dir = filepath.Join(t.TempDir(), tt.mount.Dir)
			h := &Hierarchy{Mode: modeOf([]Mount{tt.mount}), Mounts: []Mount{tt.mount}}
			h.findBase(tt.own)
			if h.Base() != tt.want || (h.noAccess == nil) != (tt.want != "") {
				t.Errorf("base = %q, no access: %v; want %q", h.Base(), h.noAccess, tt.want)
			}
		})
	}
}

// Invariant object-names: Names of all created objects contain the run; cgroups without the prefix are refused.
func TestPathsWithoutPrefixAreRefused(t *testing.T) {
	h := &Hierarchy{Mode: V2, base: "/"}
	for _, path := range []string{
		"", "/", "touchstone-a", "/system.slice", "/touchstone", "/a/touchstone-a", "/touchstone-a/..",
		"/touchstone-a/../b", "/touchstone-a//b", "/touchstone-a/", "/touchstone-a/.", "/touchstone-a\nb", "//touchstone-a",
	} {
		if _, err := h.Open(path); err == nil {
			t.Errorf("Open(%q) is accepted", path)
		}
		if _, err := h.Create(path); err == nil {
			t.Errorf("Create(%q) is accepted", path)
		}
	}
	for _, prefix := range []string{"", "t", "system", "touchstone", "../touchstone-", "touchstone-a/../.."} {
		if _, err := h.Find(prefix); err == nil {
			t.Errorf("Find(%q) is accepted", prefix)
		}
	}
	if g, err := h.Open("/touchstone-a/b"); err != nil || g.Path() != "/touchstone-a/b" {
		t.Errorf("Open = %v, %v", g, err)
	}
}

func TestParseCPUStat(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"with the controller", "usage_usec 4800\nuser_usec 1200\nsystem_usec 3600\nnr_periods 0\n", "4.8ms"},
		{"empty", "", "cpu.stat has no usage_usec"},
		{"not a number", "usage_usec x\n", `usage_usec is "x" and no number`},
		{"too great for a duration", "usage_usec 9223372036854775807\n", `usage_usec is "9223372036854775807" and no number`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := parseCPUStat(tt.text)
			got := d.String()
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("parseCPUStat(%q) = %s, want %s", tt.text, got, tt.want)
			}
		})
	}
}

func FuzzParseCPUStat(f *testing.F) {
	f.Add("usage_usec 4800\nuser_usec 1200\nsystem_usec 3600\nnice_usec 0\n")
	f.Add("usage_usec -1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseCPUStat(text); d < 0 || (err != nil && d != 0) {
			t.Errorf("parseCPUStat(%q) = %v, %v", text, d, err)
		}
	})
}

func FuzzParseMounts(f *testing.F) {
	f.Add("31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpuacct,cpu\n")
	f.Add("35 25 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n")
	f.Add("90 30 0:51 / /opt/vpn\\040client rw - cgroup none rw,name=a\n")
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := parseMounts(strings.NewReader(text))
		if err != nil && mounts != nil {
			t.Errorf("parseMounts(%q) returns mounts and the error %v", text, err)
		}
		unified := 0
		for _, m := range mounts {
			if m.V2 {
				unified++
			}
		}
		if unified > 1 {
			t.Errorf("parseMounts(%q) returns %d unified trees", text, unified)
		}
	})
}

// A mount that another one covers is no hierarchy: build sandboxes mount an empty /sys over it.
func TestDetectHiddenMounts(t *testing.T) {
	const v1 = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	for name, c := range map[string]struct {
		mounts string
		files  []string
		want   Mode
	}{
		"covered v2":           {"30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", nil, None},
		"v2":                   {"30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", []string{"sys/fs/cgroup/cgroup.controllers"}, V2},
		"covered v2 beside v1": {v1 + "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", nil, V1},
		"nothing":              {"", nil, None},
	} {
		root := t.TempDir()
		writeFixtures(t, root, map[string]string{"proc/self/mountinfo": c.mounts, "proc/self/cgroup": "0::/\n"})
		for _, file := range c.files {
			writeFixture(t, filepath.Join(root, file), "cpu memory\n")
		}
		h, err := Detect(root)
		if err != nil || h.Mode != c.want {
			t.Errorf("%s: Detect() = %+v, %v; want mode %s", name, h, err, c.want)
		}
	}
	mount := Mount{Dir: "/nonexistent"}
	if !mount.hidden("/") {
		t.Error("a v1 mount without a directory is a hierarchy")
	}
}

func writeFixtures(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		writeFixture(t, filepath.Join(dir, name), text)
	}
}

func writeFixture(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestOwnThreadFiles(t *testing.T) {
	for fixture, want := range map[string][]string{
		"v2-systemd": nil, "v2-with-net-cls": nil, "group-v2": nil, "group-arm64": nil,
		"hybrid-systemd": {"pids/user.slice/user-0.slice/session-1.scope/tasks"},
		"hybrid-split":   {"pids/tasks", "freezer/tasks", "memory/tasks", "cpuacct/tasks", "cpu/tasks"},
		"group-hybrid":   {"pids/tasks", "freezer/tasks", "memory/session/tasks", "cpuacct/tasks", "cpu/tasks"},
		"v1-comounted":   {"memory/tasks", "cpu,cpuacct/tasks"},
		"group-v1":       {"pids/tasks", "freezer/tasks", "cpu,cpuacct/tasks"},
	} {
		t.Run(fixture, func(t *testing.T) {
			root := unpack(t, fixture)
			h, err := Detect(root)
			must.Do(t, err)
			files, err := h.OwnThreadFiles()
			must.Do(t, err)
			for i, file := range files {
				files[i] = strings.TrimPrefix(file, root+"/sys/fs/cgroup/")
			}
			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("tasks files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGroupOfMachines reads and limits a group with control files from real machines.
func TestGroupOfMachines(t *testing.T) {
	const v1 = "sys/fs/cgroup/"
	unified := map[string]string{
		"sys/fs/cgroup/touchstone-fixture/cpu.max": "50000 100000", "sys/fs/cgroup/touchstone-fixture/memory.max": "67108864",
	}
	unifiedCPUs := map[string]string{
		"sys/fs/cgroup/cgroup.subtree_control": "+cpuset", "sys/fs/cgroup/touchstone-fixture/cpuset.cpus": "1-1",
	}
	for _, tt := range []struct {
		fixture string
		lacks   []string // files that older kernels lack
		mode    Mode
		usage   Usage
		missing []string
		limits  map[string]string // files after half a CPU and 64 MiB
		cpus    map[string]string // files after the CPUs 1-1
		join    string            // the file with which a process joins the cpuset
	}{
		{fixture: "group-v2", mode: V2, usage: Usage{CPU: 4306656 * time.Microsecond, PeakMemory: 8945664}, limits: unified, cpus: unifiedCPUs},
		{
			fixture: "group-v2", lacks: []string{"memory.peak", "memory.swap.max"}, mode: V2,
			usage: Usage{CPU: 4306656 * time.Microsecond}, limits: unified, cpus: unifiedCPUs,
		},
		{
			fixture: "group-arm64", mode: V2,
			usage: Usage{CPU: 35296336 * time.Microsecond, PeakMemory: 8892416}, limits: unified, cpus: unifiedCPUs,
		},
		{fixture: "group-v1", mode: V1, usage: Usage{CPU: 6280486099}, missing: []string{"memory"}},
		{
			fixture: "group-hybrid", mode: Hybrid, usage: Usage{CPU: 90805501, PeakMemory: 6946816},
			limits: map[string]string{
				v1 + "cpu/touchstone-fixture/cpu.cfs_quota_us":         "50000",
				v1 + "cpu/touchstone-fixture/cpu.cfs_period_us":        "100000",
				v1 + "memory/touchstone-fixture/memory.limit_in_bytes": "67108864",
			},
			cpus: map[string]string{
				v1 + "cpuset/touchstone-fixture/cpuset.cpus": "1-1",
				v1 + "cpuset/touchstone-fixture/cpuset.mems": "0",
			},
			join: v1 + "cpuset/touchstone-fixture/cgroup.procs",
		},
	} {
		t.Run(tt.fixture, func(t *testing.T) {
			root := unpack(t, tt.fixture)
			h, err := Detect(root)
			if err != nil || h.Mode != tt.mode || h.Base() != "/" {
				t.Fatalf("Detect = %+v, %v; want mode %s, and groups below /", h, err, tt.mode)
			}
			g, err := h.Open("/touchstone-fixture")
			must.Do(t, err)
			for _, dir := range g.allDirs() {
				for _, file := range tt.lacks {
					must.Do(t, os.Remove(filepath.Join(dir, file)))
				}
			}
			if diff := cmp.Diff(tt.missing, g.Missing()); diff != "" {
				t.Errorf("missing controllers (-want +got):\n%s", diff)
			}
			if usage, err := g.Usage(); err != nil || usage != tt.usage {
				t.Errorf("Usage = %+v, %v; want %+v", usage, err, tt.usage)
			}
			if pids, err := g.Procs(); err != nil || len(pids) > 0 {
				t.Errorf("Procs = %v, %v; want none", pids, err)
			}
			empty(t, root, tt.limits)
			if err := g.Limit(Limits{CPU: 0.5, Memory: 64 << 20}); (err != nil) != (tt.limits == nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("Limit: %v", err)
			}
			wantFiles(t, root, tt.limits)
			empty(t, root, tt.cpus)
			join, err := g.SetCPUs("1-1") // as long as 0-1, the first value of a v1 group in the fixture
			if (err != nil) != (tt.cpus == nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) || strings.TrimPrefix(join, root+"/") != tt.join {
				t.Errorf("SetCPUs = %q, %v; want %q", join, err, tt.join)
			}
			wantFiles(t, root, tt.cpus)
		})
	}
}

// empty truncates files, because the kernel replaces a value on each write.
func empty(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for file := range files {
		must.Do(t, os.Truncate(filepath.Join(root, file), 0))
	}
}

func wantFiles(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for file, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
		}
	}
}
