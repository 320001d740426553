// Package workdir keeps what a run has on the host while it lasts: its two directories
// and the lock that tells whether the run still lives. It also removes what
// runs have left behind that were killed.
//
// What belongs to a dead run is known by its ID alone, without asking any engine: cgroups
// are named after it, and processes, mounts and files name its directories. Anything
// else is not touched. Only what it had with daemons of the user's is theirs to remove: the caller of
// Sweep asks them. A run without directories is none of ours, even if there is a cgroup
// of its name: it may live where its directories, and with them its lock, are elsewhere, as in a
// container that shares the host's cgroups.
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

// Roots are the directories below which runs have theirs.
type Roots struct {
	// State is in memory on most hosts: runtimes keep their state there.
	State string
	// Data is on disk and may hold programs: root file systems, what trials write.
	Data string
	// Memory is in memory, for hosts on which State is not; empty where State is, or where there is no such place.
	Memory string
}

// all lists the directories there are.
func (r Roots) all() []string {
	if r.Memory == "" {
		return []string{r.State, r.Data}
	}
	return []string{r.State, r.Data, r.Memory}
}

// of lists the directories of a run, that with the lock last.
func (r Roots) of(runID string) []string {
	var dirs []string
	for _, root := range slices.Backward(r.all()) {
		dirs = append(dirs, filepath.Join(root, runID))
	}
	return dirs
}

// HostRoots gives the places for this user: root has /run and /var/lib, others have
// their runtime and cache directories. Where /run is on disk, as in some containers and
// virtual machines, root has /dev/shm: a file system with a journal would be measured along.
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
		return Roots{}, fmt.Errorf("find a place for the run's files: %w", err)
	}
	own := "touchstone-" + strconv.Itoa(os.Getuid())
	parent, name := os.TempDir(), own
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		parent, name = dir, "touchstone"
	}
	roots := Roots{State: filepath.Join(parent, name), Data: filepath.Join(cache, "touchstone", "runs")}
	if !inMemory(parent) && inMemory(shared) {
		roots.Memory = filepath.Join(shared, own)
	}
	return roots, nil
}

// shared is where Linux has a file system in memory for everybody.
const shared = "/dev/shm"

// inMemory tells whether a directory is of a file system in memory.
func inMemory(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	return s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC
}

// Dir is what a living run has on the host.
type Dir struct {
	RunID string
	State string // mode 0700
	Data  string // mode 0700
	// Memory is on a file system in memory, mode 0700; empty if there is none.
	Memory string

	roots Roots // without symbolic links
	named Roots // as Create was given them
	mu    sync.Mutex
	lock  *os.File // nil once all is removed
}

// NewRunID gives an ID that sorts by the time of the run and can be typed.
func NewRunID(now time.Time) string {
	return now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:4])
}

// idPattern is what run IDs look like. They become parts of paths and cgroup names, and
// nothing that is named otherwise is ever removed.
var idPattern = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[a-z2-7]{4}$`)

// Create makes the directories of a run and locks them until Remove or the end of the
// program, however it ends.
func Create(roots Roots, runID string) (*Dir, error) {
	if !idPattern.MatchString(runID) {
		return nil, fmt.Errorf("make the directories of run %q: that is no run ID", runID)
	}
	named := roots
	roots, unlock, err := guard(named)
	if err != nil {
		return nil, err
	}
	defer unlock()
	d := &Dir{RunID: runID, State: filepath.Join(roots.State, runID), Data: filepath.Join(roots.Data, runID), roots: roots, named: named}
	for _, dir := range roots.of(runID) {
		if _, err := os.Lstat(dir); err == nil {
			return nil, fmt.Errorf("make the directories of run %s: %s exists: the run is under way, or was killed (touchstone cleanup removes what it left)", runID, dir)
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

// findMemory gives the run its directory in memory.
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

// guard lets only one program at a time make or sweep directories: a run that is being made
// must not be taken for a dead one. It gives the roots without symbolic links, as mount tables
// have them.
func guard(roots Roots) (Roots, func(), error) {
	for {
		found, unlock, err := guardOnce(roots)
		// Another program may just have removed the directories: see vacate.
		if !errors.Is(err, fs.ErrNotExist) {
			return found, unlock, err
		}
	}
}

func guardOnce(roots Roots) (_ Roots, unlock func(), err error) {
	wanted := []*string{&roots.State, &roots.Data}
	if roots.Memory != "" {
		wanted = append(wanted, &roots.Memory)
	}
	for _, dir := range wanted {
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return roots, nil, fmt.Errorf("make a directory for runs: %w", err)
		}
		if err := ours(*dir); err != nil {
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

// current makes sure that a locked file is still the one at its path: who waited for the lock
// may hold one that was removed meanwhile. The error is then fs.ErrNotExist.
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

// vacate removes the directories for runs if no run is left in them. If another program is
// making or sweeping directories it does nothing: that one comes here too. Where somebody has put a symbolic link in the
// place of one, that and the directory it leads to are theirs and stay.
func vacate(roots Roots) {
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
	// Who finds the file or the directory gone makes them again.
	_ = os.Remove(path)
	if !isLink(roots.State) {
		_ = os.Remove(roots.State)
	}
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSymlink
}

// ours refuses a link of somebody else's: it could lead to a directory of ours that is for other
// things.
func ours(dir string) error {
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return fmt.Errorf("look at the directory for runs %s: %w", dir, err)
	}
	if int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("use the directory for runs %s: others can write in it, as it is not yours; remove it", dir)
	}
	return nil
}

// private refuses a directory in which others can make and rename files: it may lie in /tmp,
// where anybody could have been there before.
func private(dir string) error {
	var s unix.Stat_t
	if err := unix.Stat(dir, &s); err != nil {
		return fmt.Errorf("look at the directory for runs %s: %w", dir, err)
	}
	if int(s.Uid) != os.Geteuid() || s.Mode&0o022 != 0 {
		return fmt.Errorf("use the directory for runs %s: others can write in it; remove it, or make it yours alone (chmod 700)", dir)
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

// Remove removes the run's cgroups with whatever still runs in them, unmounts what is
// mounted below its directories, and removes these. It is idempotent, and may be called again
// after an error: until it has worked the run counts as living.
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
	if d.lock != nil { // nobody else has removed it meanwhile
		_ = d.lock.Close()
		d.lock = nil
		vacate(d.named)
	}
	return nil
}
