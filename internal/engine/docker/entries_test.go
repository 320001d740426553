package docker

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// A private daemon has an empty /var/lib and /run, so it must be given the runtimes, which may be there.
func TestRuntimeIsVisibleToPrivateDaemon(t *testing.T) {
	l, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	path := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho runc version 1.1.5\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := engine.Session{
		Launcher: l, State: t.TempDir(), Runtimes: map[string]target.Runtime{"mine": {Path: path}},
		Targets: []target.Target{{Engine: name, Runtime: "mine"}},
	}
	_, needs, _, err := findEntries(t.Context(), s, t.TempDir())
	if err != nil || !slices.Contains(needs, path) {
		t.Errorf("the daemon sees %q, %v; want %s", needs, err, path)
	}
}
