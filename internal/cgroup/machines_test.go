package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestGroupOfMachines reads and limits a group as kernels show it: its control files, from real machines.
func TestGroupOfMachines(t *testing.T) {
	const v1 = "sys/fs/cgroup/"
	unified := map[string]string{
		"sys/fs/cgroup/touchstone-fixture/cpu.max": "50000 100000", "sys/fs/cgroup/touchstone-fixture/memory.max": "67108864",
	}
	for _, tt := range []struct {
		fixture string
		lacks   []string // files that older kernels do not have
		mode    Mode
		usage   Usage
		missing []string
		limits  map[string]string // files after half a CPU and 64 MiB
	}{
		{fixture: "group-v2", mode: V2, usage: Usage{CPU: 4306656 * time.Microsecond, PeakMemory: 8945664}, limits: unified},
		{
			fixture: "group-v2", lacks: []string{"memory.peak", "memory.swap.max"}, mode: V2,
			usage: Usage{CPU: 4306656 * time.Microsecond}, limits: unified,
		},
		{fixture: "group-arm64", mode: V2, usage: Usage{CPU: 35296336 * time.Microsecond, PeakMemory: 8892416}, limits: unified},
		{fixture: "group-v1", mode: V1, usage: Usage{CPU: 6280486099}, missing: []string{"memory"}},
		{
			fixture: "group-hybrid", mode: Hybrid, usage: Usage{CPU: 90805501, PeakMemory: 6946816},
			limits: map[string]string{
				v1 + "cpu/touchstone-fixture/cpu.cfs_quota_us":         "50000",
				v1 + "cpu/touchstone-fixture/cpu.cfs_period_us":        "100000",
				v1 + "memory/touchstone-fixture/memory.limit_in_bytes": "67108864",
			},
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
			for _, dir := range g.dirs(func(Mount) bool { return true }) {
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
			for file := range tt.limits {
				// The kernel replaces the whole value.
				if err := os.Truncate(filepath.Join(root, file), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.Limit(Limits{CPU: 0.5, Memory: 64 << 20}); (err != nil) != (tt.limits == nil) || err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("Limit: %v", err)
			}
			for file, want := range tt.limits {
				if got, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(got) != want {
					t.Errorf("%s holds %q, %v; want %q", file, got, err, want)
				}
			}
		})
	}
}
