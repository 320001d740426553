package image

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/trust"
)

// lockPause is the time between two attempts to get a lock.
const lockPause = 50 * time.Millisecond

// Exclusive locks a name, so that only one process builds the object with this name. It returns an empty directory for the build, which
// Sweep keeps until release removes it. If another process holds the lock, Exclusive calls wait once, and waits.
func (c *Cache) Exclusive(ctx context.Context, name string, wait func()) (dir string, release func() error, err error) {
	if wait != nil {
		wait = sync.OnceFunc(wait)
	}
	dir = c.path("tmp", name)
	for {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", nil, fmt.Errorf("create a directory for %s: %w", name, err)
		}
		l, err := lockFile(ctx, dir, unix.O_DIRECTORY, unix.LOCK_EX, wait)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process removed it before the lock
		}
		if err != nil {
			return "", nil, fmt.Errorf("wait for another touchstone process that builds %s: %w", name, err)
		}
		if err := clearDir(dir); err != nil { // a killed process left files
			l.release()
			return "", nil, fmt.Errorf("create a directory for %s: %w", name, err)
		}
		return dir, func() error {
			defer l.release()
			return os.RemoveAll(dir)
		}, nil
	}
}

// temporary creates a directory that Sweep keeps until release removes it.
func (c *Cache) temporary(ctx context.Context, kind string) (dir string, release func() error, err error) {
	return c.Exclusive(ctx, kind+"-"+rand.Text(), nil)
}

// clearDir removes the files in a directory.
func clearDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// Sweep removes the temporary files of killed processes from the cache in a directory, and returns their paths. It keeps files that a
// running process uses. A missing cache is not an error. A cache that another user can change is one.
func Sweep(cache string) (removals []string, err error) {
	cache, err = trust.Directory(cache)
	if err == nil {
		err = trust.Entry(filepath.Join(cache, "tmp"))
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(filepath.Join(cache, "tmp"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep the image cache: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || !slices.ContainsFunc(temporaries, func(p string) bool { return strings.HasPrefix(e.Name(), p) }) {
			continue
		}
		path := filepath.Join(cache, "tmp", e.Name())
		l, err := tryLock(path, unix.O_DIRECTORY, unix.LOCK_EX)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue // a running process uses it, or has removed it
		}
		if err == nil {
			err = os.RemoveAll(path)
			l.release()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep the image cache: %w", err))
		} else {
			removals = append(removals, path)
		}
	}
	return removals, errors.Join(errs...)
}

// temporaries are the name prefixes of the cache's directories in tmp/. If a user chose the cache's directory, tmp/ may have other files.
var temporaries = []string{OwnPrefix, UpdatePrefix, "put-", "import-", "load-"}

// UpdatePrefix begins the names of the directories in which lists of packages are renewed.
const UpdatePrefix = "update-"

// fileLock is a lock on a file until release or the end of the process. It uses a plain descriptor, because the finalizer of an os.File
// would release the lock.
type fileLock int

var errLocked = errors.New("another process uses it")

// tryLock locks a file or directory, or returns errLocked. The kind is O_CREAT, which creates a missing file, or O_DIRECTORY. If
// the file is removed meanwhile, the error is fs.ErrNotExist.
func tryLock(path string, kind, mode int) (fileLock, error) {
	fd, err := unix.Open(path, kind|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	l := fileLock(fd)
	err = l.convert(mode)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	var stat unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &stat)
	}
	if err == nil && stat.Nlink == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		l.release()
		return 0, fmt.Errorf("lock %s: %w", filepath.Base(path), err)
	}
	return l, nil
}

// lockFile waits for a lock. It calls wait once if it must wait.
func lockFile(ctx context.Context, path string, kind, mode int, wait func()) (fileLock, error) {
	l, err := tryLock(path, kind, mode)
	if !errors.Is(err, errLocked) {
		return l, err
	}
	if wait != nil {
		wait()
	}
	for errors.Is(err, errLocked) {
		if err := pauseLock(ctx); err != nil {
			return 0, err
		}
		l, err = tryLock(path, kind, mode)
	}
	return l, err
}

// pauseLock waits before the next attempt to lock a file.
func pauseLock(ctx context.Context) error {
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-pause.C:
		return nil
	}
}

// convert makes the lock shared or exclusive, without waiting.
func (l fileLock) convert(mode int) error {
	for {
		err := unix.Flock(int(l), mode|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (l fileLock) release() { _ = unix.Close(int(l)) }
