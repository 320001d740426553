package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockPause is the time between two looks at a lock that another process has.
const lockPause = 50 * time.Millisecond

// lock is held while the index is changed.
func (c *Cache) lock(ctx context.Context) (unlock func(), err error) {
	l, err := lockFile(ctx, c.path("lock"), unix.LOCK_EX, nil)
	if err != nil {
		return nil, fmt.Errorf("lock the image cache: %w", err)
	}
	return l.release, nil
}

// Exclusive is held by the one process that makes something of a name. It gives a directory for it,
// empty, which goes with the lock. Whoever has to wait for another process is told so, once.
func (c *Cache) Exclusive(ctx context.Context, name string, wait func()) (dir string, release func() error, err error) {
	l, err := lockFile(ctx, c.path("tmp", name+".lock"), unix.LOCK_EX, wait)
	if err != nil {
		return "", nil, fmt.Errorf("wait for another touchstone that makes %s: %w", name, err)
	}
	dir = c.path("tmp", name)
	release = func() error {
		defer l.release()
		return os.RemoveAll(dir)
	}
	err = os.RemoveAll(dir) // a killed process left it
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		l.release()
		return "", nil, fmt.Errorf("make a place for %s: %w", name, err)
	}
	return dir, release, nil
}

// sweep removes from tmp/ what belongs to no living process.
func (c *Cache) sweep() error {
	entries, err := os.ReadDir(c.path("tmp"))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := c.path("tmp", e.Name())
		if strings.HasSuffix(path, ".lock") {
			continue // who waits for it would hold one that nobody else sees
		}
		l, err := tryLock(path+".lock", unix.LOCK_EX)
		if errors.Is(err, errLocked) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.RemoveAll(path))
		l.release()
	}
	return errors.Join(errs...)
}

// fileLock is a lock on a file that ends with the process at the latest. It has a bare descriptor,
// so that it does not go with what forgets it.
type fileLock int

var errLocked = errors.New("another process uses it")

// tryLock locks a file, or gives errLocked.
func tryLock(path string, how int) (fileLock, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
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

// lockFile waits for a lock, and says so once.
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
