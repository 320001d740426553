// Package workdir creates the directories of a run on the host, with a lock that lasts as long as the run's process.
// It also removes the leftovers of killed runs: processes, cgroups, mounts and files.
//
// The ID of a dead run identifies its leftovers, without any engine: cgroups carry the ID as their name, and
// processes, mounts and files contain the paths of its directories. The package touches nothing else. Objects in
// daemons of the user's are removed by a function that the caller of Sweep provides. A run without directories
// here is ignored, even if a cgroup has its name. Its directories and its lock may be elsewhere, for
// example in a container that shares the host's cgroups.
package workdir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
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

// of lists the directories of a run. The last one holds the lock.
func (r Roots) of(runID string) []string {
	var dirs []string
	for _, root := range slices.Backward(r.all()) {
		dirs = append(dirs, filepath.Join(root, runID))
	}
	return dirs
}

// HostRoots returns the roots for this user: /run and /var/lib for root, the user's runtime and cache directories
// for others. If /run is on disk, as in some containers and virtual machines, root uses /dev/shm instead: a file
// system with a journal would add to the measured times.
func HostRoots() (Roots, error) {
	if os.Geteuid() == 0 {
		run := "/run"
		if !inMemory(run) && inMemory(shared) {
			run = shared
		}
		return Roots{State: filepath.Join(run, "touchstone"), Data: "/var/lib/touchstone"}, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Roots{}, fmt.Errorf("find a directory for the run's files: %w", err)
	}
	unique := "touchstone-" + strconv.Itoa(os.Getuid())
	parent, name := os.TempDir(), unique
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		parent, name = dir, "touchstone"
	}
	roots := Roots{State: filepath.Join(parent, name), Data: filepath.Join(cache, "touchstone", "runs")}
	if !inMemory(parent) && inMemory(shared) {
		roots.Memory = filepath.Join(shared, unique)
	}
	return roots, nil
}

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
	lock  *os.File // nil after the removal
}

// NewRunID returns an ID that sorts by the start of the run and is easy to type.
func NewRunID(now time.Time) string {
	return now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:4])
}

// idPattern is the form of run IDs. They become parts of paths and of cgroup names. Nothing with another name is
// ever removed.
var idPattern = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[a-z2-7]{4}$`)

// Create creates the directories of a run and locks them. Remove drops the lock, and so does the kernel when the
// process ends.
func Create(roots Roots, runID string) (*Dir, error) {
	if !idPattern.MatchString(runID) {
		return nil, fmt.Errorf("make the directories of run %q: it is not a run ID", runID)
	}
	named := roots
	roots, unlock, err := lockRoots(named)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := &Dir{RunID: runID, State: filepath.Join(roots.State, runID), Data: filepath.Join(roots.Data, runID), roots: roots, named: named}
	for _, dir := range roots.of(runID) {
		if _, err := os.Lstat(dir); err == nil {
			return nil, fmt.Errorf("make the directories of run %s: %s exists: the run is under way, or was killed (touchstone cleanup removes its leftovers)", runID, dir)
		}
	}
	for _, dir := range roots.of(runID) {
		err = errors.Join(err, os.Mkdir(dir, 0o700))
	}
	if err == nil {
		d.lock, err = lock(filepath.Join(d.State, lockName), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = d.findMemory(roots)
	}
	if err != nil {
		err = fmt.Errorf("make the directories of run %s: %w", runID, err)
		for _, dir := range roots.of(runID) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return nil, err
	}
	return d, nil
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

const lockName = "lock"

// lockRoots lets only one process at a time create or sweep directories: a sweep must not take a run that is being
// created for a dead one. It returns the roots without symbolic links, as mount tables show them.
func lockRoots(roots Roots) (Roots, func(), error) {
	for {
		found, unlock, err := lockRootsOnce(roots)
		// Another process may just have removed the directories: see removeRoots.
		if !errors.Is(err, fs.ErrNotExist) {
			return found, unlock, err
		}
	}
}

func lockRootsOnce(roots Roots) (_ Roots, unlock func(), err error) {
	wanted := []*string{&roots.State, &roots.Data}
	if roots.Memory != "" {
		wanted = append(wanted, &roots.Memory)
	}
	for _, dir := range wanted {
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return roots, nil, fmt.Errorf("make a directory for runs: %w", err)
		}
		if err := owned(*dir); err != nil {
			return roots, nil, err
		}
		if *dir, err = filepath.EvalSymlinks(*dir); err != nil {
			return roots, nil, fmt.Errorf("find the directory for runs: %w", err)
		}
		if err := private(*dir); err != nil {
			return roots, nil, err
		}
	}
	path := filepath.Join(roots.State, lockName)
	f, err := lock(path, unix.LOCK_EX)
	if err != nil {
		return roots, nil, fmt.Errorf("lock %s: %w", roots.State, err)
	}
	if err := current(f, path); err != nil {
		_ = f.Close()
		return roots, nil, err
	}
	return roots, func() { _ = f.Close() }, nil
}

// current checks that a locked file is still the file at its path. Another process may have removed the file
// while this one waited for the lock. The error is then fs.ErrNotExist.
func current(f *os.File, path string) error {
	held, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err == nil && !os.SameFile(held, there) {
		err = fs.ErrNotExist
	}
	return err
}

// removeRoots removes the roots if no run is left in them. It does nothing if another process is creating or sweeping
// directories, because that process calls removeRoots too. A root that is a symbolic link belongs to the user:
// the link and its target stay.
func removeRoots(roots Roots) {
	path := filepath.Join(roots.State, lockName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil || current(f, path) != nil {
		return
	}
	entries, err := os.ReadDir(roots.State)
	if err != nil || len(entries) != 1 {
		return
	}
	for _, dir := range roots.all()[1:] {
		if isLink(dir) {
			continue
		}
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it fails unless it is empty
			return
		}
	}
	// A process that misses the file or the directory creates them again.
	_ = os.Remove(path)
	if !isLink(roots.State) {
		_ = os.Remove(roots.State)
	}
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSymlink
}

// owned refuses a root that another user owns. Such a symbolic link could lead to a directory of this user with other
// contents.
func owned(dir string) error {
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return fmt.Errorf("look at the directory for runs %s: %w", dir, err)
	}
	if int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("use the directory for runs %s: other users can write in it, because it is not yours; remove it", dir)
	}
	return nil
}

// private refuses a directory that other users can write to. It may be in /tmp, where any user could
// have created it first.
func private(dir string) error {
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return fmt.Errorf("look at the directory for runs %s: %w", dir, err)
	}
	if int(s.Uid) != os.Geteuid() || s.Mode&0o022 != 0 {
		return fmt.Errorf("use the directory for runs %s: other users can write in it; remove it, or restrict it to yourself (chmod 700)", dir)
	}
	return nil
}

func lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Remove removes the run's cgroups with all processes in them, the mounts below its directories, and the
// directories. It is idempotent and may be called again after an error. The run counts as living until Remove
// has succeeded.
func (d *Dir) Remove(ctx context.Context, groups *cgroup.Hierarchy) error {
	d.mu.Lock()
	removed := d.lock == nil
	d.mu.Unlock()
	if removed {
		return nil
	}
	if _, err := remove(ctx, d.RunID, d.roots.of(d.RunID), groups, nil); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock != nil { // a concurrent call may have dropped it
		_ = d.lock.Close()
		d.lock = nil
		removeRoots(d.named)
	}
	return nil
}
