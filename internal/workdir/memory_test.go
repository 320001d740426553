package workdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// A directory in memory is created, removed and swept with the others.
func TestMemoryRoot(t *testing.T) {
	roots := newRoots(t)
	roots.Memory = filepath.Join(t.TempDir(), "memory")
	id := newID()
	for _, end := range []string{"removed", "swept"} {
		d, err := workdir.Create(roots, id)
		must.Do(t, err)
		if info, err := os.Stat(d.Memory); err != nil || d.Memory != filepath.Join(roots.Memory, id) || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("memory is %s: %v, %v", d.Memory, info, err)
		}
		write(t, filepath.Join(d.Memory, "file"))
		if end == "removed" {
			must.Do(t, d.Remove(t.Context(), nil))
		} else {
			for _, dir := range []string{d.State, d.Data, d.Memory} { // as if its process had ended
				must.Do(t, os.Remove(filepath.Join(dir, "lock")))
			}
			if sweeps := sweep(t, roots, nil); len(sweeps) != 1 || !sweeps[0].Files {
				t.Errorf("swept %v", sweeps)
			}
		}
		for _, root := range []string{roots.State, roots.Data, roots.Memory} {
			if exists(t, root) {
				t.Errorf("%s is left when the run is %s", root, end)
			}
		}
	}
	// A leftover in memory alone is swept too.
	must.Do(t, os.MkdirAll(filepath.Join(roots.Memory, id), 0o700))
	if sweeps := sweep(t, roots, nil); len(sweeps) != 1 || sweeps[0].RunID != id || exists(t, roots.Memory) {
		t.Errorf("swept %v", sweeps)
	}
}

// A directory that another user has created is refused.
func TestMemoryOfAnotherUser(t *testing.T) {
	roots := newRoots(t)
	roots.Memory = filepath.Join(t.TempDir(), "memory")
	must.Do(t, os.Mkdir(roots.Memory, 0o700))
	must.Do(t, os.Chmod(roots.Memory, 0o777))
	if _, err := workdir.Create(roots, newID()); err == nil || !strings.Contains(err.Error(), "other users can write in it") {
		t.Errorf("Create: %v", err)
	}
}

// If the state is in memory, the run's directory in memory is part of it.
func TestMemoryBesideTheState(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "touchstone-test-") //nolint:usetesting // t.TempDir may be on a disk
	if err != nil {
		t.Skipf("needs a file system in memory at /dev/shm: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	roots := newRoots(t)
	onDisk, err := workdir.Create(roots, newID())
	must.Do(t, err)
	roots.State = filepath.Join(memory, "state")
	inMemory, err := workdir.Create(roots, newID())
	must.Do(t, err)
	if !strings.HasPrefix(inMemory.Memory, inMemory.State+"/") || !exists(t, inMemory.Memory) {
		t.Errorf("memory is %q beside the state %s", inMemory.Memory, inMemory.State)
	}
	var disk unix.Statfs_t
	must.Do(t, unix.Statfs(t.TempDir(), &disk))
	if isDisk := disk.Type != unix.TMPFS_MAGIC; isDisk && strings.HasPrefix(onDisk.Memory, "/dev/shm") {
		t.Errorf("memory is %q although the state is elsewhere", onDisk.Memory)
	}
	for _, d := range []*workdir.Dir{onDisk, inMemory} {
		must.Do(t, d.Remove(t.Context(), nil))
	}
	if exists(t, roots.State) {
		t.Error("the state is left")
	}
}
