package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// lockName is the lock in a root and in each directory of a run.
const lockName = "lock"

// rootTries bounds the attempts to lock the roots. Another process can remove a root only after a run of its own.
const rootTries = 1000

// lockRoots lets only one process at a time create or sweep directories in a root: a sweep must not take a run that is being
// created for a dead one. It returns the roots without symbolic links, as mount tables show them.
func lockRoots(roots Roots) (found Roots, unlock func(), err error) {
	for range rootTries {
		found, unlock, err = lockRootsOnce(roots)
		// Another process may just have removed the directories (see removeRoots), or have made and removed them. Some directories cannot be
		// created at all, for example in /proc, and a program may remove a directory again and again.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return found, unlock, err
}

func lockRootsOnce(roots Roots) (_ Roots, unlock func(), err error) {
	dirs := []*string{&roots.State, &roots.Data}
	if roots.Memory != "" {
		dirs = append(dirs, &roots.Memory)
	}
	for _, dir := range dirs {
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
	var locks []*os.File
	unlock = func() {
		for _, f := range locks {
			_ = f.Close()
		}
	}
	// Sessions may share some roots only. The same order in all of them prevents a deadlock.
	sorted := roots.all()
	slices.Sort(sorted)
	for _, dir := range slices.Compact(sorted) {
		path := filepath.Join(dir, lockName)
		f, err := lock(path, unix.LOCK_EX)
		if err == nil {
			locks = append(locks, f)
			err = current(f, path)
		}
		if err != nil {
			unlock()
			return roots, nil, fmt.Errorf("lock %s: %w", dir, err)
		}
	}
	return roots, unlock, nil
}

// current checks that a locked file is still the file at its path. Another process may have removed the file
// while this one waited for the lock. The error is then fs.ErrNotExist.
func current(f *os.File, path string) error {
	fileInfo, err := f.Stat()
	if err != nil {
		return err
	}
	pathInfo, err := os.Stat(path)
	if err == nil && !os.SameFile(fileInfo, pathInfo) {
		err = fs.ErrNotExist
	}
	return err
}

// removeRoots removes the roots without a run. It skips a root that another process has locked, because that process
// calls removeRoots too. A root that is a symbolic link belongs to the user: the link and its target stay.
func removeRoots(roots Roots) {
	for _, dir := range roots.all() {
		removeRoot(dir)
	}
}

func removeRoot(dir string) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil || current(f, path) != nil {
		return
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		return
	}
	// A process that misses the file or the directory creates them again.
	_ = os.Remove(path)
	if !isLink(dir) {
		_ = os.Remove(dir)
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

func lock(path string, mode int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, mode); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func flock(f *os.File, mode int) error {
	for {
		if err := unix.Flock(int(f.Fd()), mode); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
