package cgroup

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
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
		{"v2 CPU", true, Limits{CPU: 1.5}, map[string]string{"cpu.max": "150000 100000", "memory.max": ""}},
		{"v1", false, Limits{CPU: 0.29, Memory: 64 << 20}, map[string]string{
			"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "29000", "memory.limit_in_bytes": "67108864",
		}},
		{"v1 memory", false, Limits{Memory: 1}, map[string]string{"cpu.cfs_period_us": "", "cpu.cfs_quota_us": "", "memory.limit_in_bytes": "1"}},
		{"v2 processes", true, Limits{PIDs: 32}, map[string]string{"pids.max": "32", "memory.max": ""}},
		{"v1 processes", false, Limits{PIDs: 32}, map[string]string{"pids.max": "32"}},
		{"nothing", true, Limits{}, map[string]string{"cpu.max": "", "memory.max": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var files []string
			for file := range tt.want {
				files = append(files, file)
			}
			g, dir := limitFiles(t, tt.v2, files...)
			if err := g.Limit(tt.limits); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, dir, tt.want)
		})
	}
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

func TestLimitWithoutController(t *testing.T) {
	unified, _ := limitFiles(t, true) // the controllers exist but are not enabled for the group
	none := &Group{h: &Hierarchy{}, path: "/touchstone-x"}
	for _, g := range []*Group{unified, none} {
		err := g.Limit(Limits{CPU: 1, Memory: 1, PIDs: 1})
		for _, controller := range []string{"cpu", "memory", "pids"} {
			if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "controller "+controller) {
				t.Errorf("Limit: %v, want the controller %s in it", err, controller)
			}
		}
	}
}
