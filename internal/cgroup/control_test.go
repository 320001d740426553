package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// limitFiles creates a group with these control files in a hierarchy.
func limitFiles(t *testing.T, v2 bool, files ...string) (*Group, string) {
	t.Helper()
	m := Mount{Dir: t.TempDir(), V2: v2, Controllers: []string{"cpu", "memory", "pids"}}
	g := &Group{h: &Hierarchy{Mounts: []Mount{m}}, path: "/touchstone-x"}
	dir := filepath.Join(m.Dir, g.path)
	for _, file := range append(files, "cgroup.procs") {
		writeFixture(t, filepath.Join(dir, file), "")
	}
	return g, dir
}

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		v2     bool
		limits Limits
		want   map[string]string
	}{
		{"v2", true, Limits{CPU: 0.29, Memory: 64 << 20}, map[string]string{"cpu.max": "29000 100000", "memory.max": "67108864"}},
		{"v1", false, Limits{CPU: 0.29, Memory: 64 << 20}, map[string]string{
			"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "29000", "memory.limit_in_bytes": "67108864",
		}},
		{"v2 processes", true, Limits{PIDs: 32}, map[string]string{"pids.max": "32", "memory.max": ""}},
		{"v1 processes", false, Limits{PIDs: 32}, map[string]string{"pids.max": "32"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var files []string
			for file := range tt.want {
				files = append(files, file)
			}
			g, dir := limitFiles(t, tt.v2, files...)
			must.Do(t, g.Limit(tt.limits))
			wantFiles(t, dir, tt.want)
		})
	}
	g, dir := limitFiles(t, true, "cpu.max", "memory.max")
	for _, bad := range []Limits{{CPU: -1}, {Memory: -1}, {CPU: 0.001}, {CPU: 1e9}, {CPU: math.NaN()}} {
		if err := g.Limit(bad); err == nil {
			t.Errorf("Limit(%v) is accepted", bad)
		}
	}
	wantFiles(t, dir, map[string]string{"cpu.max": "", "memory.max": ""})
}

// The unified tree has a separate limit for swap if the kernel supports it.
func TestDenySwap(t *testing.T) {
	for _, tt := range []struct {
		v2         bool
		controller string
		files      map[string]string
	}{
		{true, "memory", map[string]string{"memory.swap.max": "0", "memory.swappiness": ""}},
		{true, "memory", nil},
		{true, "cpu", map[string]string{"memory.swap.max": ""}},
		{false, "memory", map[string]string{"memory.swappiness": "0", "memory.swap.max": ""}},
	} {
		dir := t.TempDir()
		for file := range tt.files {
			writeFixture(t, filepath.Join(dir, file), "")
		}
		if err := denySwap(Mount{V2: tt.v2, Controllers: []string{tt.controller}}, dir); err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
		wantFiles(t, dir, tt.files)
	}
}

// Invariant missing-controller.
func TestLimitWithoutController(t *testing.T) {
	unified, _ := limitFiles(t, true) // the controllers exist but are not enabled for the group
	orphan := &Group{h: &Hierarchy{}, path: "/touchstone-x"}
	for _, g := range []*Group{unified, orphan} {
		err := g.Limit(Limits{CPU: 1, Memory: 1, PIDs: 1})
		for _, controller := range []string{"cpu", "memory", "pids"} {
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "controller "+controller) {
				t.Errorf("Limit: %v, want the controller %s in it", err, controller)
			}
		}
	}
}

// The limits are those of the process's own groups, on v1 and in the unified tree. Its parents' limits do not count.
func TestLimitsOf(t *testing.T) {
	const unlimited = "9223372036854771712"
	for _, tt := range []struct {
		name   string
		v2     bool
		groups string
		files  map[string]string // of the process's group
		want   Limits
		err    string
	}{
		{"v2", true, "0::/x/c\n", map[string]string{"cpu.max": "50000 100000", "memory.max": "67108864", "pids.max": "32"}, Limits{CPU: 0.5, Memory: 64 << 20, PIDs: 32}, ""},
		{"v2 without limits", true, "0::/x/c\n", map[string]string{"cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"}, Limits{}, ""},
		{"v2 without controllers", true, "0::/x/c\n", nil, Limits{}, ""},
		{"v1", false, "4:cpu,memory,pids:/x/c\n0::/\n", map[string]string{"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000", "memory.limit_in_bytes": "1048576"}, Limits{CPU: 1.5, Memory: 1 << 20}, ""},
		{"v1 without limits", false, "4:cpu,memory,pids:/x/c\n", map[string]string{"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "memory.limit_in_bytes": unlimited, "pids.max": "max"}, Limits{}, ""},
		{"another period", true, "0::/x/c\n", map[string]string{"cpu.max": "5000 10000"}, Limits{CPU: 0.5}, ""},
		{"no group", false, "4:freezer:/x/c\n", map[string]string{"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"}, Limits{}, ""},
		{"garbage", true, "0::/x/c\n", map[string]string{"cpu.max": "half of it"}, Limits{}, "instead of a quota and a period"},
		{"no number", true, "0::/x/c\n", map[string]string{"cpu.max": "half 100000"}, Limits{}, "which is no limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			m := Mount{Dir: filepath.Join(root, "mount"), root: "/", V2: tt.v2, Controllers: []string{"cpu", "memory", "pids"}}
			files := map[string]string{"proc/7/cgroup": tt.groups, "mount/x/cpu.max": "1000 100000", "mount/x/cpu.cfs_quota_us": "1000"}
			for name, value := range tt.files {
				files["mount/x/c/"+name] = value + "\n"
			}
			writeFixtures(t, root, files)
			h := &Hierarchy{Mounts: []Mount{m}, own: filepath.Join(root, "proc/self/cgroup")}
			got, err := h.LimitsOf(7)
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || tt.err == "" && err != nil || got != tt.want {
				t.Errorf("LimitsOf = %+v, %v; want %+v and the error %q", got, err, tt.want, tt.err)
			}
			if _, isGroup := h.Controller("cpu"); isGroup && strings.Contains(tt.groups, "/x/c") && tt.name != "no group" {
				limits, groupErr := (&Group{h: h, path: "/x/c"}).Limits()
				if limits != got || (groupErr == nil) != (err == nil) {
					t.Errorf("Limits of the group = %+v, %v; want the same as of the process", limits, groupErr)
				}
			}
			if _, err := h.LimitsOf(8); err == nil {
				t.Error("LimitsOf accepts a process that does not exist")
			}
		})
	}
}

func TestLevel(t *testing.T) {
	controllers := []string{"memory", "pids"}
	for _, tt := range []struct {
		name        string
		v2          bool
		controllers []string
		files       map[string]string
		want        Level
		fails       bool
	}{
		{"v2", true, controllers, map[string]string{"memory.current": "4096\n", "pids.current": "7\n"}, Level{4096, 7}, false},
		{"v1", false, controllers, map[string]string{"memory.usage_in_bytes": "8192\n", "pids.current": "2\n"}, Level{8192, 2}, false},
		{"a controller that is not enabled", true, controllers, map[string]string{"pids.current": "2\n"}, Level{0, 2}, false},
		{"a missing controller", false, []string{"cpu"}, map[string]string{"pids.current": "2\n"}, Level{}, false},
		{"no number", true, controllers, map[string]string{"memory.current": "much\n"}, Level{}, true},
	} {
		dir := t.TempDir()
		tt.files["cgroup.procs"] = ""
		writeFixtures(t, filepath.Join(dir, "touchstone-x"), tt.files)
		h := &Hierarchy{Mounts: []Mount{{Dir: dir, V2: tt.v2, Controllers: tt.controllers}}}
		got, err := (&Group{h: h, path: "/touchstone-x"}).Level()
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
		if _, err := (&Group{h: h, path: "/touchstone-y"}).Level(); len(tt.controllers) == 2 && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a missing group: %v", tt.name, err)
		}
	}
}

func TestAllowance(t *testing.T) {
	for _, tt := range []struct {
		name  string
		v2    bool
		base  string
		files map[string]string
		want  Allowance
		ok    bool
		fails bool
	}{
		{
			"the root of a container", true, "/",
			map[string]string{"memory.max": "1000\n", "memory.current": "400\n", "memory.stat": "anon 300\ninactive_file 70\nactive_file 30\n"},
			Allowance{700, 1000},
			true, false,
		},
		{
			"the lowest of a slice and its parents", true, "/user.slice/mine",
			map[string]string{
				"user.slice/memory.max": "5000\n", "user.slice/memory.current": "4900\n", "user.slice/memory.stat": "",
				"user.slice/mine/memory.max": "1000\n", "user.slice/mine/memory.current": "300\n", "user.slice/mine/memory.stat": "",
			},
			Allowance{100, 5000},
			true, false,
		},
		{"more than the limit is used", true, "/", map[string]string{"memory.max": "10\n", "memory.current": "11\n", "memory.stat": ""}, Allowance{0, 10}, true, false},
		{"max", true, "/mine", map[string]string{"mine/memory.max": "max\n"}, Allowance{}, false, false},
		{
			"v1", false, "/",
			map[string]string{
				"memory.limit_in_bytes": "4096\n", "memory.usage_in_bytes": "196\n", "memory.stat": "inactive_file 7\ntotal_inactive_file 60\ntotal_active_file 40\n",
			},
			Allowance{4000, 4096},
			true, false,
		},
		{"v1 without a limit", false, "/", map[string]string{"memory.limit_in_bytes": "9223372036854771712\n"}, Allowance{}, false, false},
		{"the root of a machine", true, "/", nil, Allowance{}, false, false},
		{"no right to make groups", true, "", map[string]string{"memory.max": "1000\n"}, Allowance{}, false, false},
		{"no number", true, "/", map[string]string{"memory.max": "much\n"}, Allowance{}, false, true},
		{"no number of pages", true, "/", map[string]string{"memory.max": "9\n", "memory.current": "1\n", "memory.stat": "active_file x\n"}, Allowance{}, false, true},
		{"no level", true, "/", map[string]string{"memory.max": "1\n"}, Allowance{}, false, true},
	} {
		dir := t.TempDir()
		writeFixtures(t, dir, tt.files)
		h := &Hierarchy{Mounts: []Mount{{Dir: dir, V2: tt.v2, Controllers: []string{"memory", "pids"}}}, base: tt.base}
		got, ok, err := h.Memory()
		if got != tt.want || ok != tt.ok || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v, %v; want %+v, %v", tt.name, got, ok, err, tt.want, tt.ok)
		}
		if _, ok, err := h.Tasks(); ok || err != nil {
			t.Errorf("%s: a limit of tasks: %v, %v", tt.name, ok, err)
		}
	}
}

// Throttled is the sum over the group and all groups below it.
func TestThrottled(t *testing.T) {
	const noLimit = "usage_usec 4306656\nuser_usec 1\n"
	for _, tt := range []struct {
		what        string
		controllers []string
		stat        map[string]string // cpu.stat by group
		want        int64
		unsupported bool
		fails       bool
	}{
		{what: "one", controllers: []string{"cpu"}, stat: map[string]string{"": "nr_periods 9\nnr_throttled 7\nthrottled_time 63\n"}, want: 7},
		{what: "below", controllers: []string{"cpu"}, stat: map[string]string{"": noLimit, "a": "nr_throttled 7\n", "a/b": "nr_throttled 0\n", "c": "nr_throttled 2\n"}, want: 9},
		{what: "one is going", controllers: []string{"cpu"}, stat: map[string]string{"": "nr_throttled 7\n", "a/b": "nr_throttled 2\n"}, want: 9},
		{what: "a kernel without limits", controllers: []string{"cpu"}, stat: map[string]string{"": noLimit}, unsupported: true},
		{what: "no controller", controllers: []string{"memory"}, stat: map[string]string{"": "nr_throttled 7\n"}, unsupported: true},
		{what: "no number", controllers: []string{"cpu"}, stat: map[string]string{"": "nr_throttled -7\n"}, fails: true},
	} {
		dir := t.TempDir()
		for group, text := range tt.stat {
			writeFixture(t, filepath.Join(dir, "touchstone-x", group, "cpu.stat"), text)
		}
		g := &Group{h: &Hierarchy{Mounts: []Mount{{Dir: dir, V2: true, Controllers: tt.controllers}}}, path: "/touchstone-x"}
		n, err := g.Throttled()
		if n != tt.want || errors.Is(err, errors.ErrUnsupported) != tt.unsupported || (err != nil) != (tt.unsupported || tt.fails) {
			t.Errorf("%s: %d, %v; want %d", tt.what, n, err, tt.want)
		}
	}
}

// A process is held only if the groups that the kernel names are mounted here and list it.
//
// Invariant shared-parts.
func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		v2     bool
		root   string // of the mount
		groups string
		files  map[string]string
		want   bool
	}{
		{"v2", true, "/", "0::/docker/c\n", map[string]string{"docker/c": "7\n8\n"}, true},
		{"v1", false, "/", "4:cpu,memory,pids:/docker/c\n1:name=systemd:/other\n", map[string]string{"docker/c": "7\n"}, true},
		{"outside of the namespace", true, "/", "0::/../c\n", map[string]string{"c": "7\n"}, false},
		{"above the namespace", true, "/", "0::/..\n", map[string]string{"": "7\n"}, false},
		{"outside of the namespace on v1", false, "/", "4:cpu,memory,pids:/../../c\n", map[string]string{"c": "7\n"}, false},
		{"a part of the tree", true, "/docker/own", "0::/docker/c\n", map[string]string{"c": "7\n"}, false},
		{"below the part", true, "/docker", "0::/docker/c\n", map[string]string{"c": "7\n"}, true},
		{"no such group here", true, "/", "0::/docker/c\n", nil, false},
		{"a group of others", true, "/", "0::/docker/c\n", map[string]string{"docker/c": "0\n70\n"}, false},
		{"no controller in use", false, "/", "4:net_cls:/docker/c\n", map[string]string{"docker/c": "7\n"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			writeFixture(t, filepath.Join(root, "proc/7/cgroup"), tt.groups)
			for group, pids := range tt.files {
				writeFixture(t, filepath.Join(root, "mount", group, "cgroup.procs"), pids)
			}
			m := Mount{Dir: filepath.Join(root, "mount"), root: tt.root, V2: tt.v2, Controllers: []string{"cpu", "memory", "pids"}}
			h := &Hierarchy{Mounts: []Mount{m}, own: filepath.Join(root, "proc/self/cgroup")}
			if got, err := h.Holds(7); err != nil || got != tt.want {
				t.Errorf("Holds = %v, %v; want %v", got, err, tt.want)
			}
			if _, err := h.Holds(8); err == nil {
				t.Error("Holds accepts a process that does not exist")
			}
		})
	}
}

func TestSetCPUs(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		outer := top(t, h)
		g := sub(t, outer, "pinned")
		join, err := g.SetCPUs("0")
		m, ok := h.Controller("cpuset")
		if !ok {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("without the controller: %v", err)
			}
			return
		}
		if err != nil || m.V2 != (join == "") {
			t.Fatalf("SetCPUs = %q, %v", join, err)
		}
		cmd := start(t, g, "wait")
		if join != "" {
			must.Do(t, os.WriteFile(join, []byte(fmt.Sprint(cmd.Process.Pid)), 0))
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil || !strings.Contains(string(status), "\nCpus_allowed_list:\t0\n") {
			t.Errorf("a process in the group: %v\n%s", err, status)
		}
		if _, err := g.SetCPUs("8191"); err == nil || !strings.Contains(err.Error(), "8191") {
			t.Errorf("CPUs that do not exist: %v", err)
		}
		// The parent keeps all CPUs for its other children.
		if got, want := cpusOf(t, m, outer.Path()), cpusOf(t, m, "/"); got != want {
			t.Errorf("the parent has the CPUs %q, want %q", got, want)
		}
	})
}

// cpusOf returns the effective CPUs of a group.
func cpusOf(t *testing.T, m Mount, group string) string {
	t.Helper()
	got, err := words(filepath.Join(m.Dir, group), "cpuset.effective_cpus")
	if m.V2 {
		got, err = words(filepath.Join(m.Dir, group), "cpuset.cpus.effective")
	}
	must.Do(t, err)
	return strings.Join(got, "")
}

// On v2 SetCPUs enables the controller in all parents, and fails only without the controller.
func TestSetCPUsUnified(t *testing.T) {
	root := t.TempDir()
	h := &Hierarchy{Mode: V2, Mounts: []Mount{{Dir: root, V2: true, Controllers: []string{"cpuset"}}}, base: "/"}
	g, err := h.Open("/touchstone-x/daemon")
	must.Do(t, err)
	for _, dir := range []string{"", "touchstone-x", "touchstone-x/daemon"} {
		writeFixtures(t, filepath.Join(root, dir), map[string]string{"cgroup.subtree_control": "", "cgroup.controllers": "cpuset\n"})
	}
	if _, err := g.SetCPUs("0-1"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without the controller's file: %v", err)
	}
	writeFixture(t, filepath.Join(root, "touchstone-x/daemon/cpuset.cpus"), "")
	if join, err := g.SetCPUs("0-1"); join != "" || err != nil {
		t.Errorf("SetCPUs = %q, %v", join, err)
	}
	wantFiles(t, root, map[string]string{
		"cgroup.subtree_control": "+cpuset", "touchstone-x/cgroup.subtree_control": "+cpuset",
		"touchstone-x/daemon/cgroup.subtree_control": "", "touchstone-x/daemon/cpuset.cpus": "0-1",
	})
}
