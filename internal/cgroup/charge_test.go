package cgroup

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The memory, the CPU time and the processes of a group are also its parent's.
func TestCharges(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		parent := top(t, h)
		g := sub(t, parent, "a")
		cmd := start(t, g, "work")
		for _, g := range []*Group{g, parent} {
			inRange := func(n int64) bool { return n >= touched && n <= 4*touched }
			usage, err := g.Usage()
			if err != nil || usage.CPU < burnt || usage.CPU > 100*burnt {
				t.Errorf("%s: Usage = %+v, %v; want CPU time a little above %v", g.Path(), usage, err, burnt)
			}
			memory, err := g.Memory()
			if slices.Contains(g.Missing(), "memory") {
				if !errors.Is(err, errors.ErrUnsupported) || usage.PeakMemory != 0 {
					t.Errorf("%s: Memory = %d, %v, and the peak %d without the controller", g.Path(), memory, err, usage.PeakMemory)
				}
			} else if err != nil || !inRange(memory) || !inRange(usage.PeakMemory) {
				t.Errorf("%s: Memory = %d, %v, and the peak %d, want a little above %d", g.Path(), memory, err, usage.PeakMemory, touched)
			}
			if cpu, err := g.CPU(); err != nil || cpu < burnt || cpu > 100*burnt {
				t.Errorf("%s: CPU = %v, %v, want a little above %v", g.Path(), cpu, err, burnt)
			}
			pids, err := g.AccountedProcs()
			if diff := cmp.Diff([]int{cmd.Process.Pid}, pids); err != nil || diff != "" {
				t.Errorf("%s: AccountedProcs: %v (-want +got):\n%s", g.Path(), err, diff)
			}
		}
	})
}

// A removed group has no memory and no processes, its CPU time is lost, and it can be killed and removed again.
func TestChargesOfARemovedGroup(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		g, err := h.Open("/touchstone-nothing")
		if err != nil {
			t.Fatal(err)
		}
		if memory, err := g.Memory(); memory != 0 || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Memory = %d, %v", memory, err)
		}
		if cpu, err := g.CPU(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("CPU = %v, %v; want fs.ErrNotExist", cpu, err)
		}
		if pids, err := g.AccountedProcs(); len(pids) > 0 || err != nil {
			t.Errorf("AccountedProcs = %v, %v", pids, err)
		}
		_, err = g.Usage()
		for what, err := range map[string]error{"Usage": err, "Limit": g.Limit(Limits{CPU: 1})} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s = %v; want fs.ErrNotExist", what, err)
			}
		}
		if err := errors.Join(g.Kill(t.Context()), g.Remove(t.Context())); err != nil {
			t.Errorf("Kill and Remove = %v", err)
		}
	})
}

func TestMemoryWithoutTheController(t *testing.T) {
	dir := t.TempDir()
	writeFixture(t, filepath.Join(dir, "touchstone-x/cgroup.procs"), "")
	for what, controllers := range map[string][]string{"not enabled for the group": {"memory"}, "not in the kernel": {"cpu"}} {
		g := &Group{h: &Hierarchy{Mounts: []Mount{{Dir: dir, V2: true, Controllers: controllers}}}, path: "/touchstone-x"}
		if memory, err := g.Memory(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: Memory = %d, %v; want errors.ErrUnsupported", what, memory, err)
		}
	}
}
