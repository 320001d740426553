package workdir_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

func TestCreateAndRemove(t *testing.T) {
	roots, id := newRoots(t), newID()
	for range 2 { // an ID can be had again
		d, err := workdir.Create(roots, id)
		must.Do(t, err)
		if d.RunID != id || d.State != filepath.Join(roots.State, id) || d.Data != filepath.Join(roots.Data, id) {
			t.Errorf("%s has the directories %s and %s", d.RunID, d.State, d.Data)
		}
		for _, dir := range []string{roots.State, roots.Data, d.State, d.Data} {
			if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
				t.Errorf("%s: %v, %v; want a directory of mode 0700", dir, info.Mode(), err)
			}
		}
		if _, err := workdir.Create(roots, id); err == nil || !strings.Contains(err.Error(), "touchstone cleanup") {
			t.Errorf("Create of a run that is under way: %v", err)
		}
		if sweeps := sweep(t, roots, nil); len(sweeps) > 0 {
			t.Errorf("a living run was swept: %v", sweeps)
		}
		write(t, filepath.Join(d.Data, "file"))
		write(t, filepath.Join(d.State, "file"))
		for range 2 {
			if err := d.Remove(t.Context(), nil); err != nil {
				t.Errorf("Remove: %v", err)
			}
		}
		if exists(t, d.State) || exists(t, d.Data) {
			t.Error("a directory is left")
		}
	}
}

// A root may be a symbolic link to another disk. It stays one for all runs and after a sweep.
func TestLinkedRoots(t *testing.T) {
	real := newRoots(t)
	links := t.TempDir()
	roots := workdir.Roots{State: filepath.Join(links, "state"), Data: filepath.Join(links, "data"), Memory: filepath.Join(links, "memory")}
	real.Memory = filepath.Join(t.TempDir(), "memory")
	for link, dir := range map[string]string{roots.State: real.State, roots.Data: real.Data, roots.Memory: real.Memory} {
		must.Do(t, os.MkdirAll(dir, 0o700), os.Symlink(dir, link))
	}
	for range 2 {
		d, err := workdir.Create(roots, newID())
		must.Do(t, err)
		if filepath.Dir(d.State) != real.State || filepath.Dir(d.Data) != real.Data || filepath.Dir(d.Memory) != real.Memory {
			t.Errorf("the run has %s, %s and %s", d.State, d.Data, d.Memory)
		}
		must.Do(t, d.Remove(t.Context(), nil))
		sweep(t, roots, nil)
		for _, link := range []string{roots.State, roots.Data, roots.Memory} {
			if left, err := os.ReadDir(link); err != nil || len(left) > 0 {
				t.Errorf("the target of the link holds %v, %v", left, err)
			}
			if target, err := os.Readlink(link); err != nil {
				t.Errorf("the link is %q, %v", target, err)
			}
		}
	}
}

// IDs become parts of paths and of cgroup names.
func TestInvalidIDs(t *testing.T) {
	good := newID()
	for _, id := range []string{
		"", ".", "..", "/", "../" + good, good + "/..", good + "/x", "lock", "20260101", good + "\n", "\n" + good, " " + good,
		strings.ToUpper("20260101-000000-abcd"), "20260101-000000-abc", "20260101-000000-abcde", "20260101-000000-ab1d",
		"20260101-000000-äbc", "2026010-0000000-abcd", "*", "20260101-000000-????",
	} {
		roots := newRoots(t)
		if d, err := workdir.Create(roots, id); err == nil {
			t.Errorf("Create accepts %q and makes %s", id, d.State)
		}
		if exists(t, roots.State) || exists(t, roots.Data) {
			t.Errorf("Create of %q creates files", id)
		}
	}
}

func TestNewRunID(t *testing.T) {
	moment := time.Date(2026, time.November, 20, 13, 4, 5, 0, time.FixedZone("", 3600))
	ids := map[string]bool{}
	for range 100 {
		id := workdir.NewRunID(moment)
		if !strings.HasPrefix(id, "20261120-120405-") {
			t.Fatalf("NewRunID() = %s: not the time in UTC", id)
		}
		if _, err := workdir.Create(newRoots(t), id); err != nil {
			t.Fatalf("NewRunID() = %s is not an ID: %v", id, err)
		}
		ids[id] = true
	}
	if len(ids) < 95 { // of a million
		t.Errorf("100 runs of one second have %d IDs", len(ids))
	}
	if successor := workdir.NewRunID(moment.Add(time.Second)); slices.Max(slices.Collect(keys(ids))) > successor {
		t.Errorf("%s does not sort after the IDs of the second before", successor)
	}
}

func keys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// A refused Create leaves no files and changes no existing file.
func TestCreateWithLeftovers(t *testing.T) {
	for _, kind := range []string{"state", "data"} {
		roots, id := newRoots(t), newID()
		fullDir, freeDir := filepath.Join(roots.State, id), filepath.Join(roots.Data, id)
		if kind == "data" { // as after a restart of the machine
			fullDir, freeDir = freeDir, fullDir
		}
		must.Do(t, os.MkdirAll(fullDir, 0o700))
		write(t, filepath.Join(fullDir, "file"))
		if _, err := workdir.Create(roots, id); err == nil {
			t.Errorf("Create takes over the %s of another run", kind)
		}
		if !exists(t, filepath.Join(fullDir, "file")) || exists(t, freeDir) {
			t.Errorf("the refused Create changed %s", kind)
		}
		sweep(t, roots, nil)
		if _, err := workdir.Create(roots, id); err != nil {
			t.Errorf("Create after the sweep: %v", err)
		}
	}
}

// Other users could replace a run's files.
func TestSharedRootsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(dir string) error
	}{
		{"everybody", func(dir string) error { return os.Chmod(dir, 0o777) }},
		{"the group", func(dir string) error { return os.Chmod(dir, 0o770) }},
		{"sticky", func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }},
		{"another owner", func(dir string) error { return os.Chown(dir, 12345, 12345) }},
		{"another owner's link", func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir), os.Lchown(dir, 12345, 12345))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.name, "another owner") {
				root(t, "gives a directory away")
			}
			for _, kind := range []string{"state", "data"} {
				roots := newRoots(t)
				dir := map[string]string{"state": roots.State, "data": roots.Data}[kind]
				must.Do(t, os.MkdirAll(dir, 0o700))
				must.Do(t, tt.make(dir))
				dead(t, roots, newID())
				if _, err := workdir.Create(roots, newID()); err == nil || !strings.Contains(err.Error(), "other users can write in it") {
					t.Errorf("Create in a shared %s: %v", kind, err)
				}
				if sweeps, err := workdir.Sweep(t.Context(), roots, nil, workdir.Daemons{}); err == nil || len(sweeps) > 0 {
					t.Errorf("Sweep of a shared %s: %v, %v", kind, sweeps, err)
				}
			}
		})
	}
}

// A run whose removal has failed counts as living: its cgroup still holds a process, and its directories stay.
func TestRemoveAfterAnError(t *testing.T) {
	h := groups(t)
	roots, id := newRoots(t), newID()
	d, err := workdir.Create(roots, id)
	must.Do(t, err)
	process := newGroup(t, h, id)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Remove(ctx, h); err == nil {
		t.Fatal("Remove with a cancelled context worked")
	}
	if !exists(t, d.State) || !exists(t, d.Data) {
		t.Error("the directories are gone before the cgroup is")
	}
	if sweeps := sweep(t, roots, h); len(sweeps) > 0 {
		t.Errorf("a living run was swept: %v", sweeps)
	}
	if err := d.Remove(t.Context(), h); err != nil {
		t.Errorf("Remove again: %v", err)
	}
	killed(t, process, true)
	if found, err := h.Find(engine.Prefix + id); err != nil || len(found) > 0 || exists(t, d.State) || exists(t, d.Data) {
		t.Errorf("the remaining cgroups are %v, %v, or a directory remains", found, err)
	}
}

// The orderly end of a run and the immediate end after a second ^C may coincide.
func TestConcurrentRemove(t *testing.T) {
	d, err := workdir.Create(newRoots(t), newID())
	must.Do(t, err)
	for i := range 200 {
		write(t, filepath.Join(d.Data, strings.Repeat("x", i+1)))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := d.Remove(t.Context(), nil); err != nil {
				t.Errorf("Remove: %v", err)
			}
		})
	}
	wg.Wait()
	if exists(t, d.State) || exists(t, d.Data) {
		t.Error("a directory is left")
	}
}

func TestHostRoots(t *testing.T) {
	roots := workdir.HostRoots()
	for _, dir := range []string{roots.State, roots.Data} {
		if !filepath.IsAbs(dir) || !strings.Contains(dir, "touchstone") {
			t.Errorf("runs have their directories in %s", dir)
		}
	}
	if syscall.Geteuid() != 0 {
		return
	}
	// The type of the file system decides, not its name: the state is on disk only if no usual directory is in memory.
	disk := func(dir string) bool {
		var s syscall.Statfs_t
		return syscall.Statfs(dir, &s) != nil || s.Type != 0x01021994 && s.Type != 0x858458f6 // tmpfs, ramfs
	}
	want := "/run/touchstone"
	if disk("/run") && !disk("/dev/shm") {
		want = "/dev/shm/touchstone"
	}
	if roots.State != want || roots.Data != "/var/lib/touchstone" {
		t.Errorf("roots of root: %+v, want state in %s", roots, want)
	}
}

// The roots are removed with the last run, also if one of them is missing.
func TestRootsAreRemovedWithoutData(t *testing.T) {
	roots := newRoots(t)
	dir, err := workdir.Create(roots, newID())
	must.Do(t, err)
	must.Do(t, os.RemoveAll(roots.Data))
	must.Do(t, dir.Remove(t.Context(), nil))
	if _, err := os.Stat(roots.State); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", roots.State, err)
	}
}
