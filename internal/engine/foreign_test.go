package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Only empty cgroups that did not exist before are removed, as often as they come back.
func TestForeignCgroups(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	s := engine.Session{State: state, Cgroups: &cgroup.Hierarchy{Mounts: []cgroup.Mount{{Dir: root}}}}
	make := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(want int) {
		t.Helper()
		if n, err := engine.RemoveForeignCgroups(state); n != want || err != nil {
			t.Errorf("RemoveForeignCgroups() = %d, %v; want %d", n, err, want)
		}
	}
	remove(0)
	make("users")
	for range 2 { // two daemons
		if err := s.RecordForeignCgroups("users", "vc", "busy"); err != nil {
			t.Fatal(err)
		}
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
