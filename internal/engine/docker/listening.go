package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// listening returns when a process listens on a socket. It waits for changes in the socket's directory, which must exist. The
// bind call creates the socket, and the daemon sets its owner after listen.
func listening(ctx context.Context, socket string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("wait for socket %s: %w", socket, os.NewSyscallError("inotify_init1", err))
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer func() { _ = events.Close() }() // it is only read from
	defer context.AfterFunc(ctx, func() { _ = events.Close() })()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(socket), unix.IN_CREATE|unix.IN_ATTRIB|unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("wait for socket %s: %w", socket, os.NewSyscallError("inotify_add_watch", err))
	}
	buffer := make([]byte, 4<<10)
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.Close()
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) {
			return err
		}
		if _, err := events.Read(buffer); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("wait for socket %s: %w", socket, err)
		}
	}
}
