package workdir_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// A second session of the same user has another state directory, for example without XDG_RUNTIME_DIR. It must not sweep the living run
// of the first one. It removes all directories of the run after a crash.
//
// Invariant dead-runs.
func TestRunOfAnotherSession(t *testing.T) {
	first := newRoots(t)
	second := newRoots(t)
	second.Data = first.Data
	thirdRoots := newRoots(t)
	thirdRoots.Memory = first.State // it shares only this directory
	id := newID()
	crash := other(t, first, id)
	for name, roots := range map[string]workdir.Roots{"the same data": second, "one directory": thirdRoots} {
		if sweeps := sweep(t, roots, nil); len(sweeps) > 0 {
			t.Errorf("with %s, the living run was swept: %v", name, sweeps)
		}
		if _, err := workdir.Create(roots, id); err == nil {
			t.Errorf("with %s, Create took over the living run", name)
		}
	}
	// The file system of the state may disappear at logout, and its lock with it.
	must.Do(t, os.RemoveAll(filepath.Join(first.State, id)))
	if sweeps := sweep(t, first, nil); len(sweeps) > 0 {
		t.Errorf("the living run was swept without its state: %v", sweeps)
	}
	crash()

	crash = other(t, first, newID())
	crash()
	if sweeps := sweep(t, second, nil); len(sweeps) != 2 || !sweeps[0].Files || !sweeps[1].Files {
		t.Errorf("swept after the crashes: %v", sweeps)
	}
	if left, err := filepath.Glob(filepath.Join(first.State, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("the state of the dead run is left: %q, %v", left, err)
	}
	if exists(t, first.Data) {
		t.Error("the directory for runs is left")
	}
}

// record writes the record of a run's owner, with a change.
func record(t *testing.T, dir string, change func(owner map[string]any)) {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must.Do(t, err)
	host, err := os.Hostname()
	must.Do(t, err)
	owner := map[string]any{"host": host, "boot": strings.TrimSpace(string(boot)), "dirs": []string{dir}}
	change(owner)
	text, err := json.Marshal(owner)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "owner.json"), text, 0o600)
	}
	must.Do(t, err)
}

// The test's own record has the form of a run's record.
func TestRecordOfOwner(t *testing.T) {
	roots, id := newRoots(t), newID()
	d, err := workdir.Create(roots, id)
	must.Do(t, err)
	for _, dir := range []string{d.State, d.Data} {
		got, err := os.ReadFile(filepath.Join(dir, "owner.json"))
		must.Do(t, err)
		record(t, dir, func(owner map[string]any) { owner["dirs"] = []string{d.Data, d.State} })
		want, err := os.ReadFile(filepath.Join(dir, "owner.json"))
		must.Do(t, err)
		var a, b any
		must.Do(t, json.Unmarshal(got, &a), json.Unmarshal(want, &b))
		expect.Equal(t, fmt.Sprintf("the owner of %s", dir), b, a)
	}
	must.Do(t, d.Remove(t.Context(), nil))
}

// On a shared file system, a run of another host may be alive although its locks are free here.
//
// Invariant dead-runs.
func TestRunOfAnotherHostStays(t *testing.T) {
	for _, kind := range []string{"state", "data"} {
		roots, id := newDead(t)
		dir := filepath.Join(map[string]string{"state": roots.State, "data": roots.Data}[kind], id)
		record(t, dir, func(owner map[string]any) { owner["host"] = "elsewhere.example" })
		want := []workdir.Swept{{RunID: id, Host: "elsewhere.example", Dirs: []string{filepath.Join(roots.Data, id), filepath.Join(roots.State, id)}}}
		sweeps := sweep(t, roots, nil)
		expect.Equal(t, "swept", want, sweeps)
		for _, part := range []string{"elsewhere.example", dir, "touchstone cleanup"} {
			if text := fmt.Sprint(sweeps[0]); !strings.Contains(text, part) {
				t.Errorf("%q does not contain %q", text, part)
			}
		}
		if !exists(t, filepath.Join(roots.Data, id, "t1", "file")) || !exists(t, filepath.Join(roots.State, id, "lock")) {
			t.Error("a file of the other host's run was removed")
		}
		if _, err := workdir.Create(roots, id); err == nil {
			t.Error("Create took over the other host's run")
		}
	}
}

// A run of an earlier boot is dead, also if its lock cannot be queried.
func TestRunOfAnEarlierBootIsSwept(t *testing.T) {
	for _, oldBoot := range []bool{true, false} {
		roots, id := newDead(t)
		data := filepath.Join(roots.Data, id)
		record(t, data, func(owner map[string]any) {
			if oldBoot {
				owner["boot"] = "00000000-0000-0000-0000-000000000000"
			}
		})
		if err := os.Mkdir(filepath.Join(data, "lock"), 0o700); err != nil { // cannot be opened for writing
			t.Fatal(err)
		}
		sweeps, err := workdir.Sweep(t.Context(), roots, nil, workdir.Daemons{})
		if oldBoot && (err != nil || len(sweeps) != 1 || !sweeps[0].Files || exists(t, data)) {
			t.Errorf("the run of an earlier boot: %v, %v", sweeps, err)
		}
		if !oldBoot && (err == nil || len(sweeps) > 0 || !exists(t, data)) {
			t.Errorf("the run of this boot: %v, %v; want an error", sweeps, err)
		}
	}
}

// A malformed record is ignored. So are recorded directories that cannot be the run's.
func TestMalformedRecord(t *testing.T) {
	id := newID()
	keepDir, publicDir, stray := t.TempDir(), t.TempDir(), t.TempDir()
	must.Do(t, os.Chmod(publicDir, 0o777))
	var keep []string
	for _, dir := range []string{keepDir, filepath.Join(stray, newID()), filepath.Join(publicDir, id)} {
		must.Do(t, os.MkdirAll(dir, 0o700))
		keep = append(keep, filepath.Join(dir, "file"))
		write(t, keep[len(keep)-1])
	}
	t.Chdir(stray)
	dirs := []string{keepDir, filepath.Dir(keep[1]), filepath.Join(publicDir, id), keepDir + "/../" + id, id, "", "/", "/proc/none/" + id}
	valid, err := json.Marshal(map[string]any{"dirs": dirs})
	must.Do(t, err)
	for _, text := range []string{"", "{", "[]", `{"dirs": 1}`, `{"host": ["elsewhere"]}`, strings.Repeat(" ", 1<<20) + `{"host": "elsewhere"}`, string(valid)} {
		roots := newRoots(t)
		dead(t, roots, id)
		must.Do(t, os.WriteFile(filepath.Join(roots.Data, id, "owner.json"), []byte(text), 0o600))
		if text == string(valid) {
			record(t, filepath.Join(roots.Data, id), func(owner map[string]any) { owner["dirs"] = dirs })
		}
		expect.Equal(t, fmt.Sprintf("swept with the record %.40q", text), []workdir.Swept{{RunID: id, Files: true}}, sweep(t, roots, nil))
	}
	for _, file := range keep {
		if !exists(t, file) {
			t.Errorf("%s was removed", file)
		}
	}
}

// Runs and sweeps of sessions that share all roots or only some, in any order. No living run is swept, and no session waits forever.
func TestSweepDuringCreate(t *testing.T) {
	dir := t.TempDir()
	root := func(name string) string { return filepath.Join(dir, name) }
	sessions := []workdir.Roots{
		{State: root("a"), Data: root("b")},
		{State: root("a"), Data: root("b")},
		{State: root("c"), Data: root("b")},
		{State: root("b"), Data: root("a"), Memory: root("c")},
		{State: root("c"), Data: root("d"), Memory: root("a")},
	}
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	// Few sessions often remove all roots, and many often wait for a lock.
	for _, rivals := range [][]workdir.Roots{sessions[1:], sessions[:2], slices.Repeat(sessions, 3)} {
		var wg sync.WaitGroup
		for _, roots := range rivals {
			wg.Go(func() {
				for range rounds {
					d, err := workdir.Create(roots, newID())
					if err != nil {
						t.Error(err)
						return
					}
					if _, err := workdir.Sweep(t.Context(), roots, nil, workdir.Daemons{}); err != nil {
						t.Error(err)
					}
					for _, dir := range []string{d.State, d.Data} {
						if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
							t.Errorf("a living run was swept: %v", err)
						}
					}
					if err := d.Remove(t.Context(), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left at the end: %v, %v", left, err)
	}
}

// The directory for runs cannot be created, or another program removes it again and again. Create and Sweep end with an error.
func TestRootThatStaysAway(t *testing.T) {
	for _, roots := range []workdir.Roots{
		{State: "/proc/none/touchstone", Data: filepath.Join(t.TempDir(), "data")},
		{State: filepath.Join(t.TempDir(), "state"), Data: "/proc/none"},
	} {
		_, createErr := workdir.Create(roots, newID())
		_, sweepErr := workdir.Sweep(t.Context(), roots, nil, workdir.Daemons{})
		for _, err := range []error{createErr, sweepErr} {
			if err == nil || !strings.Contains(err.Error(), "/proc/none") || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%+v: %v; want an error that names the directory", roots, err)
			}
		}
		if slices.ContainsFunc([]string{roots.State, roots.Data}, func(dir string) bool {
			return !strings.HasPrefix(dir, "/proc") && exists(t, filepath.Join(dir, "lock"))
		}) {
			t.Errorf("%+v: a lock is left", roots)
		}
	}
}
