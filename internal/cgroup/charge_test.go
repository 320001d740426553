package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The current memory, the CPU time and the processes of a group are also its parent's.
func TestCharges(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		parent := top(t, h)
		g := sub(t, parent, "a")
		cmd := start(t, g, "work")
		for _, g := range []*Group{g, parent} {
			memory, err := g.Memory()
			if slices.Contains(g.Missing(), "memory") {
				if !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s: Memory = %d, %v without the controller", g.Path(), memory, err)
				}
			} else if err != nil || memory < touched || memory > 4*touched {
				t.Errorf("%s: Memory = %d, %v, want a little above %d", g.Path(), memory, err, touched)
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

// A removed group has no memory and no processes, and its CPU time is lost.
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
	})
}

func TestMemoryWithoutTheController(t *testing.T) {
	dir := t.TempDir()
	group := filepath.Join(dir, "touchstone-x")
	if err := errors.Join(os.MkdirAll(group, 0o755), os.WriteFile(filepath.Join(group, "cgroup.procs"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for what, controllers := range map[string][]string{"not enabled for the group": {"memory"}, "not in the kernel": {"cpu"}} {
		g := &Group{h: &Hierarchy{Mounts: []Mount{{Dir: dir, V2: true, Controllers: controllers}}}, path: "/touchstone-x"}
		if memory, err := g.Memory(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: Memory = %d, %v; want errors.ErrUnsupported", what, memory, err)
		}
	}
}
