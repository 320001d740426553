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

	"github.com/touchstone-bench/touchstone/internal/filelock"
	"github.com/touchstone-bench/touchstone/internal/trust"
)

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
		l, err := filelock.Wait(ctx, dir, filelock.Directory, filelock.Exclusive, wait)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process removed it before the lock
		}
		if err != nil {
			return "", nil, fmt.Errorf("wait for another touchstone process that builds %s: %w", name, err)
		}
		if err := clearDir(dir); err != nil { // a killed process left files
			l.Release()
			return "", nil, fmt.Errorf("create a directory for %s: %w", name, err)
		}
		return dir, func() error {
			defer l.Release()
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
		l, err := filelock.Try(path, filelock.Directory, filelock.Exclusive)
		if errors.Is(err, filelock.ErrLocked) || errors.Is(err, fs.ErrNotExist) {
			continue // a running process uses it, or has removed it
		}
		if err == nil {
			err = os.RemoveAll(path)
			l.Release()
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
