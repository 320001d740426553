package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// Only empty cgroups that did not exist before are removed, as often as they come back.
func TestForeignCgroups(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	s := engine.Session{State: state, Cgroups: &cgroup.Hierarchy{Mounts: []cgroup.Mount{{Dir: root}}}}
	make := func(name string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Join(root, name), 0o700))
	}
	remove := func(want int) {
		t.Helper()
		if n, err := engine.RemoveForeign(state); n != want || err != nil {
			t.Errorf("RemoveForeign() = %d, %v; want %d", n, err, want)
		}
	}
	remove(0)
	make("users")
	for range 2 { // two daemons
		must.Do(t, s.RecordForeignCgroups("users", "vc", "busy"))
		make("vc")
		make("busy/child")
	}
	remove(1)
	make("vc")
	remove(1)
	for name, want := range map[string]bool{"users": true, "busy/child": true, "vc": false} {
		if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != want {
			t.Errorf("%s exists: %v, want %v", name, err == nil, want)
		}
	}
	if err := (engine.Session{State: state}).RecordForeignCgroups("x"); err != nil {
		t.Errorf("without cgroups: %v", err)
	}
}

// Only empty directories that did not exist before are removed.
func TestForeignDirs(t *testing.T) {
	for name, tt := range map[string]struct {
		before, file, left bool
	}{
		"new":         {},
		"the user's":  {before: true, left: true},
		"with a file": {file: true, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := engine.Session{State: t.TempDir()}
			dir := filepath.Join(t.TempDir(), "opt", "containerd")
			bin := filepath.Join(dir, "bin")
			fill := func() {
				must.Do(t, os.MkdirAll(bin, 0o711))
			}
			if tt.before {
				fill()
			}
			must.Do(t, s.RecordForeignDirs(bin, dir, filepath.Dir(dir)))
			fill()
			file := filepath.Join(bin, "program")
			if tt.file {
				must.Do(t, os.WriteFile(file, nil, 0o600))
			}
			if n, err := engine.RemoveForeign(s.State); n != 0 || err != nil {
				t.Errorf("RemoveForeign() = %d, %v; want no cgroups", n, err)
			}
			for path, want := range map[string]bool{filepath.Dir(dir): tt.left, bin: tt.left, file: tt.file} {
				if _, err := os.Lstat(path); (err == nil) != want {
					t.Errorf("%s: %v; left should be %v", path, err, want)
				}
			}
		})
	}
}
