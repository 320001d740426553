package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// stateOf is the state of run "a" as another process reads it, in a listing and by itself.
func stateOf(t *testing.T, path string) result.State {
	t.Helper()
	s := openReader(t, path)
	run, err := s.Run(t.Context(), "a")
	must.Do(t, err)
	list, err := s.Runs(t.Context())
	must.Do(t, err)
	if list[0].State != run.State {
		t.Errorf("the run is %s, and %s in the listing", run.State, list[0].State)
	}
	return run.State
}

// Invariant running-runs: Only a run that a process executes is listed as running.
func TestKilledRunIsNotRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	check := func(want result.State) {
		t.Helper()
		if got := stateOf(t, path); got != want {
			t.Errorf("the run is %s, want %s", got, want)
		}
	}
	first := open(t, path)
	must.Do(t, first.Create(t.Context(), emptyRun("a", 0)))
	check(result.Running)
	second := open(t, path)
	if err := second.Resume(t.Context(), "a"); !errors.Is(err, store.ErrUnderWay) {
		t.Errorf("Resume of a run that another process executes: %v", err)
	}
	if err := first.Create(t.Context(), emptyRun("a", 0)); !errors.Is(err, store.ErrExists) {
		t.Errorf("Create of a run that exists: %v", err)
	}
	check(result.Running) // neither error dropped the lock
	closeStore(t, first)
	check(result.Killed)
	must.Do(t, second.Resume(t.Context(), "a"))
	check(result.Running)
	must.Do(t, second.Finish(t.Context(), "a", result.Complete, time.Now(), nil))
	check(result.Complete)
	if left, err := filepath.Glob(path + "*.lock"); len(left) > 0 || err != nil {
		t.Errorf("lock files are left: %q, %v", left, err)
	}
}

// An imported run that was under way at its export is not running here, and nobody here killed it.
//
// Invariant running-runs.
func TestImportedRunIsNotRunning(t *testing.T) {
	s := newStore(t)
	run := emptyRun("a", 0)
	for range 2 { // the second time it is there already
		_, err := importRuns(t, s, run)
		must.Do(t, err)
	}
	if got := stateOf(t, s.Path()); got != result.Interrupted {
		t.Errorf("the imported run is %s, want %s", got, result.Interrupted)
	}
}

// The next run removes the lock files of killed runs, and no other file.
func TestStaleLocksAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "results.db")
	must.Do(t, open(t, path).Create(t.Context(), emptyRun("a", 0)))
	stale, rival, userFile := path+"-killed.lock", filepath.Join(dir, "other.db-killed.lock"), path+"-of-a-user.lock"
	for _, name := range []string{stale, rival} {
		must.Do(t, os.WriteFile(name, nil, 0o644))
	}
	must.Do(t, os.WriteFile(userFile, []byte("content"), 0o644))
	must.Do(t, open(t, path).Create(t.Context(), emptyRun("b", 0)))
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file of a killed run: %v", err)
	}
	for _, name := range []string{path + "-a.lock", rival, userFile} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("a file in use or of another results file: %v", err)
		}
	}
	if got := stateOf(t, path); got != result.Running {
		t.Errorf("the run is %s, want %s", got, result.Running)
	}
}
