// Package workdir creates the directories of a run on the host, with a lock that lasts as long as the run's process.
// It also removes the leftovers of killed runs: processes, cgroups, mounts and files.
//
// The ID of a dead run identifies its leftovers, without any engine: cgroups carry the ID as their name, and
// processes, mounts and files contain the paths of its directories. The package touches nothing else. Objects in
// daemons of the user's are removed by a function that the caller of Sweep provides. A run without directories
// here is ignored, even if a cgroup has its name. Its directories and its locks may be elsewhere, for
// example in a container that shares the host's cgroups.
//
// Two sessions of one user may share some roots only: one has XDG_RUNTIME_DIR, and the other one has not. So each directory
// of a run has a lock and a record of its owner, and each root has a lock. A run is alive if any of its locks is held.
package workdir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
)

// Roots are the parents of the runs' directories.
type Roots struct {
	// State is for the state of runtimes. It is in memory on most hosts.
	State string
	// Data is for root file systems and for the files of trials. It is on disk and must allow programs to be executed.
	Data string
	// Memory is in memory. It is empty if State is in memory, or if the host has no such file system.
	Memory string
}

// all lists the directories that are not empty.
func (r Roots) all() []string {
	if r.Memory == "" {
		return []string{r.State, r.Data}
	}
	return []string{r.State, r.Data, r.Memory}
}

// of lists the directories of a run. The last one holds the state.
func (r Roots) of(runID string) []string {
	var dirs []string
	for _, root := range slices.Backward(r.all()) {
		dirs = append(dirs, filepath.Join(root, runID))
	}
	return dirs
}

// HostRoots returns the roots for this user: /run and /var/lib for root, the user's runtime and cache directories
// for others, and a directory in /var/tmp for a user without a home. If /run is on disk, as in some containers and virtual machines, root uses /dev/shm instead: a file
// system with a journal would add to the measured times.
func HostRoots() Roots {
	if os.Geteuid() == 0 {
		run := "/run"
		if !inMemory(run) && inMemory(shared) {
			run = shared
		}
		return Roots{State: filepath.Join(run, "touchstone"), Data: "/var/lib/touchstone"}
	}
	return userRoots()
}

func userRoots() Roots {
	unique := "touchstone-" + strconv.Itoa(os.Getuid())
	data := filepath.Join(varTmp, unique)
	if cache, err := os.UserCacheDir(); err == nil { // HOME may be unset
		data = filepath.Join(cache, "touchstone", "runs")
	}
	parent, name := os.TempDir(), unique
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		parent, name = dir, "touchstone"
	}
	roots := Roots{State: filepath.Join(parent, name), Data: data}
	if !inMemory(parent) && inMemory(shared) {
		roots.Memory = filepath.Join(shared, unique)
	}
	return roots
}

// varTmp is on disk, and every user can write to it.
const varTmp = "/var/tmp"

// shared is Linux's file system in memory for all users.
const shared = "/dev/shm"

// inMemory reports whether a directory is on a file system in memory.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	return s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC
}

// Dir holds the directories of a living run.
type Dir struct {
	RunID string
	State string // mode 0700
	Data  string // mode 0700
	// Memory is on a file system in memory, mode 0700. It is empty if the host has none.
	Memory string

	roots Roots // without symbolic links
	named Roots // as given to Create
	mu    sync.Mutex
	locks []*os.File // of the directories; nil after the removal
}

// NewRunID returns an ID that sorts by the start of the run and is easy to type.
func NewRunID(moment time.Time) string {
	return moment.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:4])
}

// idPattern is the form of run IDs. They become parts of paths and of cgroup names. Nothing with another name is
// ever removed.
var idPattern = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[a-z2-7]{4}$`)

// Create creates the directories of a run and locks them. Remove drops the locks, and so does the kernel when the
// process ends.
func Create(roots Roots, runID string) (*Dir, error) {
	if !idPattern.MatchString(runID) {
		return nil, fmt.Errorf("make the directories of run %q: it is not a run ID", runID)
	}
	spelling := roots
	roots, unlock, err := lockRoots(spelling)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := &Dir{RunID: runID, State: filepath.Join(roots.State, runID), Data: filepath.Join(roots.Data, runID), roots: roots, named: spelling}
	for _, dir := range roots.of(runID) {
		if _, err := os.Lstat(dir); err == nil {
			return nil, fmt.Errorf("make the directories of run %s: %s exists: the run is under way, or was killed (touchstone cleanup removes its leftovers)", runID, dir)
		}
	}
	for _, dir := range roots.of(runID) {
		err = errors.Join(err, os.Mkdir(dir, 0o700))
	}
	if err == nil {
		err = d.claim()
	}
	if err == nil {
		err = d.findMemory(roots)
	}
	if err != nil {
		err = fmt.Errorf("make the directories of run %s: %w", runID, err)
		for _, dir := range roots.of(runID) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		d.release()
		return nil, err
	}
	return d, nil
}

// claim locks the directories and records their owner in each.
func (d *Dir) claim() error {
	dirs := d.roots.of(d.RunID)
	for _, dir := range dirs {
		f, err := lock(filepath.Join(dir, lockName), unix.LOCK_EX)
		if err != nil {
			return err
		}
		d.locks = append(d.locks, f)
		if err := writeOwner(dir, dirs); err != nil {
			return err
		}
	}
	return nil
}

// release drops the locks.
func (d *Dir) release() {
	for _, f := range d.locks {
		_ = f.Close()
	}
	d.locks = nil
}

// findMemory sets the run's directory in memory.
func (d *Dir) findMemory(roots Roots) error {
	switch {
	case roots.Memory != "":
		d.Memory = filepath.Join(roots.Memory, d.RunID)
	case inMemory(d.State):
		d.Memory = filepath.Join(d.State, "memory")
		return os.Mkdir(d.Memory, 0o700)
	}
	return nil
}

// Remove removes the run's cgroups with all processes in them, the mounts below its directories, and the
// directories. It is idempotent and may be called again after an error. The run counts as living until Remove
// has succeeded.
func (d *Dir) Remove(ctx context.Context, groups *cgroup.Hierarchy) error {
	d.mu.Lock()
	isRemoved := d.locks == nil
	d.mu.Unlock()
	if isRemoved {
		return nil
	}
	r := &deadRun{leftovers: leftovers{id: d.RunID, dirs: d.roots.of(d.RunID), states: []string{d.State}}}
	if err := r.remove(ctx, groups); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks != nil { // a concurrent call may have dropped them
		d.release()
		removeRoots(d.named)
	}
	return nil
}
