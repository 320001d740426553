package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// errNoSpace reports that a disk has too little free space for an image.
var errNoSpace = errors.New("not enough free space")

const mebi = 1 << 20

// RequireSpace returns an error if the disk of a cache directory has fewer than need bytes of free space.
func RequireSpace(dir string, need int64) error {
	err := requireSpace(dir, need)
	if errors.Is(err, errNoSpace) {
		err = fmt.Errorf("%w; %s", err, largerDisk)
	}
	return err
}

// largerDisk is the advice for a cache on a full disk.
const largerDisk = "free space, or set " + CacheVariable + " to a directory on a larger disk"

// addAdvice adds a remedy to an error about free space.
func (c *Cache) addAdvice(err error) error {
	if !errors.Is(err, errNoSpace) {
		return err
	}
	if dir, dirErr := CacheDir(); dirErr == nil && dir == c.dir {
		return fmt.Errorf("%w; %s", err, largerDisk)
	}
	return fmt.Errorf("%w; free space there", err)
}

func requireSpace(dir string, need int64) error {
	free, _, err := space(dir)
	if err == nil && free < need {
		err = fmt.Errorf("%w: %s has %d MiB, but %d are needed", errNoSpace, dir, free/mebi, need/mebi+1)
	}
	return err
}

// space returns the free and the total size of a file system, in bytes.
func space(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil
}

// reserve is the space of a file system that must stay free: a number of bytes, or a share of its size if that is less.
type reserve struct {
	bytes int64
	share float64
}

// spaceGuard checks during writes to a directory that the reserve stays free.
type spaceGuard struct {
	dir     string
	reserve reserve
	written int64
	next    int64 // the value of written at the next check
}

// checkInterval is the number of bytes between two checks of the disk.
const checkInterval = 16 << 20

// take accounts n written bytes.
func (g *spaceGuard) take(n int) error {
	if g.written += int64(n); g.written < g.next {
		return nil
	}
	g.next = g.written + checkInterval
	free, total, err := space(g.dir)
	if err != nil {
		return err
	}
	if minimum := min(g.reserve.bytes, int64(g.reserve.share*float64(total))); free < minimum {
		err := fmt.Errorf("%w: less than %d MiB would stay free", errNoSpace, minimum/mebi)
		return &fs.PathError{Op: "write to", Path: g.dir, Err: err}
	}
	return nil
}

// spaceReader is a reader of content for a disk. It fails when the disk has too little space.
type spaceReader struct {
	r     io.Reader
	guard *spaceGuard
}

func (s spaceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if full := s.guard.take(n); full != nil {
		return 0, full
	}
	return n, err
}
