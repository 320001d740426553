package docker

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/system"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// A private daemon has an empty /var/lib and /run, so it must be given the runtimes, which may be there.
func TestRuntimeIsVisibleToPrivateDaemon(t *testing.T) {
	l := enginetest.Launcher(t)
	path := filepath.Join(t.TempDir(), "mine")
	must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\necho runc version 1.1.5\n"), 0o700))
	s := engine.Session{
		Launcher: l, State: t.TempDir(), Runtimes: map[string]target.Runtime{"mine": {Path: path}},
		Targets: []target.Target{{Engine: name, Runtime: "mine"}},
	}
	_, needs, _, err := findEntries(t.Context(), s, t.TempDir())
	if err != nil || !slices.Contains(needs, path) {
		t.Errorf("the daemon sees %q, %v; want %s", needs, err, path)
	}
}

// The daemon looks its programs up by their names, also if their files have others.
func TestProgramsAreFoundByName(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	dir := filepath.Join(t.TempDir(), "bin")
	f := found{"dockerd": "/opt/dockerd", "containerd": "/opt/containerd-2.1", "containerd-shim-runc-v2": "/opt/shim"}
	path, err := f.link(dir, map[string]string{"containerd-shim-kata-v2": "/opt/kata/shim-go", "containerd-shim-mine-v1": ""})
	if err != nil || path != dir+":/opt:/usr/bin" {
		t.Errorf("link = %q, %v", path, err)
	}
	got := map[string]string{}
	links, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, link := range links {
		if got[link.Name()], err = os.Readlink(filepath.Join(dir, link.Name())); err != nil {
			t.Error(err)
		}
	}
	want := map[string]string{"containerd": "/opt/containerd-2.1", "containerd-shim-runc-v2": "/opt/shim", "containerd-shim-kata-v2": "/opt/kata/shim-go"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// A private daemon has an entry for the system's copy of a runtime, besides the copy of touchstone setup.
func TestEntryOfSystemCopy(t *testing.T) {
	l := enginetest.Launcher(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	var paths []string
	for _, sub := range []string{"store/runc/1/bin", "usr"} {
		path := filepath.Join(dir, sub, "runc")
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho runc version 1.1.5\n"), 0o755))
		paths = append(paths, path)
	}
	t.Setenv(parts.Variable, filepath.Join(dir, "store"))
	t.Setenv("PATH", filepath.Dir(paths[0])+":"+filepath.Dir(paths[1]))
	s := engine.Session{Launcher: l, State: t.TempDir(), Targets: []target.Target{target.Target{Engine: name, Runtime: "runc"}.With("copy", "system")}}
	e, needs, _, err := findEntries(t.Context(), s, t.TempDir())
	must.Do(t, err)
	for _, path := range paths {
		if _, ok := e.find(path, nil); !ok || !slices.Contains(needs, path) {
			t.Errorf("no entry for %s: %+v, %q", path, e, needs)
		}
	}
}

// The user's own daemon calls the system's runtimes, and no part of touchstone setup.
func TestUsersDaemonCallsTheSystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	for _, sub := range []string{"store/runc/1/bin", "usr"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o755), os.WriteFile(filepath.Join(dir, sub, "runc"), nil, 0o755))
	}
	t.Setenv(parts.Variable, filepath.Join(dir, "store"))
	t.Setenv("PATH", filepath.Join(dir, "store/runc/1/bin")+":"+filepath.Join(dir, "usr"))
	d := &daemon{}
	d.info.Runtimes = map[string]system.RuntimeWithStatus{"runc": {Runtime: system.Runtime{Path: "runc"}}}
	if path := d.sessionFor("runc").Runtimes["runc"].Path; path != filepath.Join(dir, "usr/runc") {
		t.Errorf("the daemon calls %s", path)
	}
}
