package supply

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

// dropCaches is the kernel's file for dropping the page cache.
const dropCaches = "proc/sys/vm/drop_caches"

// Caches is the page cache of a machine.
type Caches struct{ root string }

// NewCaches returns the page cache of a machine. root is the root of its file system: "/", or a copy in tests.
func NewCaches(root string) Caches { return Caches{root} }

// Check returns an error if this process cannot drop the page cache, for example in a container with a read-only /proc/sys.
func (c Caches) Check() error {
	err := unix.Access(filepath.Join(c.root, dropCaches), unix.W_OK)
	if err != nil {
		return fmt.Errorf("drop the page cache by /%s: %w", dropCaches, err)
	}
	return nil
}

// Drop drops the page cache, dentries and inodes of the whole machine. First it writes dirty pages to the disks, because the kernel would
// keep them. It returns when ctx ends, but the kernel may continue to write.
func (c Caches) Drop(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		unix.Sync()
		if ctx.Err() != nil {
			return
		}
		// The file always exists on Linux, so it must not be created.
		f, err := os.OpenFile(filepath.Join(c.root, dropCaches), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("3\n")
			err = errors.Join(err, f.Close())
		}
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("drop the page cache: %w", err)
	}
	return nil
}

// OOMKills returns the number of OOM kills on the machine at root since boot, because of a memory limit or for lack of memory on
// the machine. Kernels before 4.13 have no counter; the error is then fs.ErrNotExist.
func OOMKills(root string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/vmstat"))
	if err != nil {
		return 0, fmt.Errorf("read the number of OOM kills: %w", err)
	}
	_, rest, ok := strings.Cut("\n"+string(b), "\noom_kill ")
	if !ok {
		return 0, fmt.Errorf("read the number of OOM kills: no oom_kill in /proc/vmstat: %w", fs.ErrNotExist)
	}
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the number of OOM kills: %w", err)
	}
	return n, nil
}
