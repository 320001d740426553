package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range g.allDirs() {
				for _, file := range tt.lacks {
					if err := os.Remove(filepath.Join(dir, file)); err != nil {
						t.Fatal(err)
					}
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
		if err := os.Truncate(filepath.Join(root, file), 0); err != nil {
			t.Fatal(err)
		}
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
