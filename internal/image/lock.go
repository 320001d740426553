package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is the time between two attempts to get a lock.
const lockPause = 50 * time.Millisecond

// lock locks the index for a change.
func (c *Cache) lock(ctx context.Context) (unlock func(), err error) {
	l, err := lockFile(ctx, c.path("lock"), unix.LOCK_EX, nil)
	if err != nil {
		return nil, fmt.Errorf("lock the image cache: %w", err)
	}
	return l.release, nil
}

// Exclusive locks a name, so that only one process builds the object with this name. It returns an empty directory for the build, and
// release removes it. If another process holds the lock, Exclusive calls wait once, and waits.
func (c *Cache) Exclusive(ctx context.Context, name string, wait func()) (dir string, release func() error, err error) {
	l, err := lockFile(ctx, c.path("tmp", name+".lock"), unix.LOCK_EX, wait)
	if err != nil {
		return "", nil, fmt.Errorf("wait for another touchstone process that builds %s: %w", name, err)
	}
	dir = c.path("tmp", name)
	release = func() error {
		defer l.release()
		return os.RemoveAll(dir)
	}
	err = os.RemoveAll(dir) // a killed process left it
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		l.release()
		return "", nil, fmt.Errorf("create a directory for %s: %w", name, err)
	}
	return dir, release, nil
}

// temporary creates a directory that Sweep keeps until release removes it.
func (c *Cache) temporary(kind string) (dir string, release func() error, err error) {
	for {
		dir, err = os.MkdirTemp(c.path("tmp"), kind+"-")
		if err != nil {
			return "", nil, err
		}
		l, err := lockDir(dir)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue // Sweep removed the directory before the lock
		}
		if err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
		return dir, func() error {
			defer l.release()
			return os.RemoveAll(dir)
		}, nil
	}
}

// lockDir locks a directory, or returns errLocked. If the directory is removed meanwhile, it returns fs.ErrNotExist.
func lockDir(path string) (fileLock, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	l, err := locked(fd, path, unix.LOCK_EX)
	if err != nil {
		return 0, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Nlink == 0 {
		l.release()
		return 0, &fs.PathError{Op: "lock", Path: path, Err: fs.ErrNotExist}
	}
	return l, nil
}

// Sweep removes the temporary files of killed processes from the cache in a directory, and returns their paths. It keeps files that a
// running process uses. A missing cache is not an error.
func Sweep(cache string) (removed []string, err error) {
	entries, err := os.ReadDir(filepath.Join(cache, "tmp"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep the image cache: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(cache, "tmp", e.Name())
		gone, err := sweepDir(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep the image cache: %w", err))
		} else if gone {
			removed = append(removed, path)
		}
	}
	return removed, errors.Join(errs...)
}

// temporaries are the name prefixes of the cache's directories in tmp/. If a user chose the cache's directory, tmp/ may have other files.
var temporaries = []string{OwnPrefix, "put-", "import-", "load-"}

// sweepDir removes a directory of tmp/ unless a running process uses it.
func sweepDir(path string) (gone bool, err error) {
	base := filepath.Base(path)
	// Keep lock files: a process that waits for a removed lock file would lock a file that other processes cannot find.
	if strings.HasSuffix(base, ".lock") || !slices.ContainsFunc(temporaries, func(p string) bool { return strings.HasPrefix(base, p) }) {
		return false, nil
	}
	var l fileLock
	if IsOwn(base) {
		l, err = tryLock(path+".lock", unix.LOCK_EX)
	} else {
		l, err = lockDir(path)
	}
	if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer l.release()
	return true, os.RemoveAll(path)
}

// fileLock is a lock on a file until release or the end of the process. It uses a plain descriptor, because the finalizer of an os.File
// would release the lock.
type fileLock int

var errLocked = errors.New("another process uses it")

// tryLock locks a file, or returns errLocked. It creates the file if necessary.
func tryLock(path string, how int) (fileLock, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return locked(fd, path, how)
}

// locked locks an open file.
func locked(fd int, path string, how int) (fileLock, error) {
	l := fileLock(fd)
	if err := l.convert(how); err != nil {
		l.release()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errLocked
		}
		return 0, fmt.Errorf("lock %s: %w", filepath.Base(path), err)
	}
	return l, nil
}

// lockFile waits for a lock. It calls wait once if it must wait.
func lockFile(ctx context.Context, path string, how int, wait func()) (fileLock, error) {
	l, err := tryLock(path, how)
	if !errors.Is(err, errLocked) {
		return l, err
	}
	if wait != nil {
		wait()
	}
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	for errors.Is(err, errLocked) {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-pause.C:
			l, err = tryLock(path, how)
		}
	}
	return l, err
}

// convert makes the lock shared or exclusive, without waiting.
func (l fileLock) convert(how int) error {
	for {
		err := unix.Flock(int(l), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (l fileLock) release() { _ = unix.Close(int(l)) }
