package performance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inCache reports whether the page cache holds more of the files than the kernel itself keeps or reads in.
func inCache(cached, size int64) bool { return cached > size/100 }

// cachedBytes returns the bytes of the files at or below a path that are in the host's page cache, and their size. It uses
// mincore and not cachestat: files of an overlay are cached as files of its layers, which only a mapping reaches.
func cachedBytes(path string) (cached, size int64, err error) {
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		c, n, err := cachedOf(name)
		cached, size = cached+c, size+n
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("look for files in the page cache: %w", err)
	}
	return cached, size, nil
}

// cachedOf is cachedBytes of one file.
func cachedOf(name string) (cached, size int64, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	page, size := int64(os.Getpagesize()), info.Size()
	const window = 1 << 30 // mapped at once; mapping reads nothing
	resident := make([]byte, (min(size, window)+page-1)/page)
	for offset := int64(0); offset < size; offset += window {
		length := min(size-offset, window)
		mapped, err := unix.Mmap(int(f.Fd()), offset, int(length), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, 0, &fs.PathError{Op: "mmap", Path: name, Err: err}
		}
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(length), uintptr(unsafe.Pointer(&resident[0])))
		if err := unix.Munmap(mapped); err != nil {
			return 0, 0, &fs.PathError{Op: "munmap", Path: name, Err: err}
		}
		if errno != 0 {
			return 0, 0, &fs.PathError{Op: "mincore", Path: name, Err: errno}
		}
		for i := range (length + page - 1) / page {
			if resident[i]&1 != 0 {
				cached += min(page, length-i*page)
			}
		}
	}
	return cached, size, nil
}
