package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// waitForFile waits for CRI-O's file about the exit of a container. It is for virtual machines: CRI-O reports the hypervisor as the
// process of each container, and the hypervisor lives as long as the pod. It makes no request; confirmExit gets the exit
// code after the wait.
func (c *container) waitForFile(ctx context.Context) (engine.Exit, error) {
	file := filepath.Join(c.e.service.exitFiles, c.name)
	if err := engine.Call(ctx, func() error { return awaitFile(ctx, file) }); err != nil {
		return engine.Exit{}, err
	}
	return c.confirmExit(ctx)
}

// awaitFile returns when a file exists. Its directory must exist.
func awaitFile(ctx context.Context, file string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", file, os.NewSyscallError("inotify_init1", err))
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer func() { _ = events.Close() }() // it is only read from
	defer context.AfterFunc(ctx, func() { _ = events.Close() })()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(file), unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("wait for %s: %w", file, os.NewSyscallError("inotify_add_watch", err))
	}
	buffer := make([]byte, 4<<10)
	for {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := events.Read(buffer); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("wait for %s: %w", file, err)
		}
	}
}
