package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropCaches is the file by which the kernel drops what it caches of files.
const dropCaches = "proc/sys/vm/drop_caches"

// Caches are the page cache of the machine whose file system begins at a root ("/", or a copy for tests).
type Caches struct{ root string }

// NewCaches gives those of a machine.
func NewCaches(root string) Caches { return Caches{root} }

// Check tells why this process cannot drop them, as in a container in which /proc/sys is read-only.
func (c Caches) Check() error {
	err := unix.Access(filepath.Join(c.root, dropCaches), unix.W_OK)
	if err != nil {
		return fmt.Errorf("drop the page cache by /%s: %w", dropCaches, err)
	}
	return nil
}

// Drop writes to the disks what has changed, since the kernel keeps such pages, and then drops the page cache with
// dentries and inodes, of the whole machine. When ctx ends it returns, though the kernel may go on writing.
func (c Caches) Drop(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		unix.Sync()
		if ctx.Err() != nil {
			return
		}
		// The file is there, or this is no Linux: it is not to be made.
		f, err := os.OpenFile(filepath.Join(c.root, dropCaches), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("3\n")
			err = errors.Join(err, f.Close())
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("drop the page cache: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drop the page cache: %w", context.Cause(ctx))
	}
}

// Free tells how many bytes this user can write to the file system of a directory.
func Free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("ask how much space %s has: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// Available tells how many bytes of memory the kernel of the machine at root can give without swapping (MemAvailable).
func Available(root string) (int64, error) {
	n, known := tree{os.DirFS(root)}.meminfo()["MemAvailable"]
	if !known {
		return 0, fmt.Errorf("ask how much memory is available: /proc/meminfo does not say: %w", fs.ErrNotExist)
	}
	return n, nil
}

// OOMKills counts the processes that the kernel of the machine at root has killed since its start for want of
// memory, of a limit or of the machine. Kernels before 4.13 do not count; the error is then fs.ErrNotExist.
func OOMKills(root string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/vmstat"))
	if err != nil {
		return 0, fmt.Errorf("count kills for want of memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("count kills for want of memory: %w", err)
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("count kills for want of memory: /proc/vmstat does not: %w", fs.ErrNotExist)
}
