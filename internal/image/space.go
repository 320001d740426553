package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// errNoRoom says that a disk has not the room for an image.
var errNoRoom = errors.New("there is not enough room")

const mebi = 1 << 20

// RequireSpace makes sure that a disk has room for so many bytes. dir is in the cache.
func RequireSpace(dir string, need int64) error {
	err := requireSpace(dir, need)
	if errors.Is(err, errNoRoom) {
		err = fmt.Errorf("%w; %s", err, largerDisk)
	}
	return err
}

// largerDisk is the advice where the cache is on a disk that is full.
const largerDisk = "make room, or set " + CacheVariable + " to a directory on a larger disk"

// advise adds to an error what to do where there is no room.
func (c *Cache) advise(err error) error {
	if !errors.Is(err, errNoRoom) {
		return err
	}
	if dir, unknown := CacheDir(); unknown == nil && dir == c.dir {
		return fmt.Errorf("%w; %s", err, largerDisk)
	}
	return fmt.Errorf("%w; make room there", err)
}

func requireSpace(dir string, need int64) error {
	free, _, err := space(dir)
	if err == nil && free < need {
		err = fmt.Errorf("%w: %s has %d MiB free, and %d are needed", errNoRoom, dir, free/mebi, need/mebi+1)
	}
	return err
}

// space gives what a file system has free, and has in all, in bytes.
func space(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("look for space in %s: %w", dir, err)
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil
}

// reserve is what must stay free of a file system: so many bytes, or a share of it if that is less.
type reserve struct {
	bytes int64
	share float64
}

// room watches that what is written to a directory leaves the reserve.
type room struct {
	dir     string
	reserve reserve
	written int64
	next    int64 // what has been written when it is looked again
}

// roomStep is what is written, in bytes, between two looks at the disk.
const roomStep = 16 << 20

func (r *room) take(n int) error {
	if r.written += int64(n); r.written < r.next {
		return nil
	}
	r.next = r.written + roomStep
	free, total, err := space(r.dir)
	if err != nil {
		return err
	}
	if least := min(r.reserve.bytes, int64(r.reserve.share*float64(total))); free < least {
		err := fmt.Errorf("%w: less than %d MiB would stay free", errNoRoom, least/mebi)
		return &fs.PathError{Op: "write to", Path: r.dir, Err: err}
	}
	return nil
}

// sparing reads what is to be written, and ends where there is no room for it.
type sparing struct {
	r    io.Reader
	room *room
}

func (s sparing) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if full := s.room.take(n); full != nil {
		return 0, full
	}
	return n, err
}
