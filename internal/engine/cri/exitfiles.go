package cri

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

var (
	errLostEvents = errors.New("the kernel has dropped events")
	errNoExitsDir = errors.New("it was removed or moved")
)

// lifetime is a running engine. Exited is closed when the engine has exited, and Err then returns the reason.
type lifetime interface {
	Exited() <-chan struct{}
	Err() error
}

// exitFiles is CRI-O's directory container_exits_dir. CRI-O makes a file there when a container in a virtual machine exits, with the
// container's ID as its name, and soon removes it. Its content is no exit code. The files of CRI-O's other containers are conmon's.
//
// A lost event ends the stream: the directory does not show which exits were lost. The exit of CRI-O ends it too.
func exitFiles(dir string, crio lifetime) exitSource {
	return func(ctx context.Context) (func(func(string, int)) error, error) {
		fail := func(call string, err error) error {
			return fmt.Errorf("watch %s: %w", dir, os.NewSyscallError(call, err))
		}
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return nil, fail("inotify_init1", err)
		}
		inotify := os.NewFile(uintptr(fd), "inotify") // non-blocking, and therefore in Go's poller
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MOVE_SELF|unix.IN_ONLYDIR); err != nil {
			return nil, errors.Join(fail("inotify_add_watch", err), inotify.Close())
		}
		exitSignal := crio.Exited()
		return func(report func(string, int)) error {
			ctx, cancel := context.WithCancelCause(ctx)
			var watch sync.WaitGroup
			watch.Go(func() {
				if engine.Await(ctx, exitSignal) == nil {
					cancel(crio.Err())
				}
				_ = inotify.Close()
			})
			defer watch.Wait()
			defer cancel(nil)
			buffer := make([]byte, 16<<10)
			for {
				n, err := inotify.Read(buffer)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err == nil {
					err = readExits(buffer[:n], report)
				}
				if err != nil {
					return fmt.Errorf("watch %s: %w", dir, err)
				}
			}
		}, nil
	}
}

// readExits reports the new files in a buffer of inotify's events.
func readExits(buffer []byte, report func(id string, code int)) error {
	for len(buffer) >= unix.SizeofInotifyEvent {
		mask, size := binary.NativeEndian.Uint32(buffer[4:]), int(binary.NativeEndian.Uint32(buffer[12:]))
		end := unix.SizeofInotifyEvent + size
		if size < 0 || end > len(buffer) {
			break
		}
		name, _, _ := bytes.Cut(buffer[unix.SizeofInotifyEvent:end], []byte{0})
		buffer = buffer[end:]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			return errLostEvents
		case mask&(unix.IN_IGNORED|unix.IN_MOVE_SELF|unix.IN_UNMOUNT) != 0:
			return errNoExitsDir
		case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 && mask&unix.IN_ISDIR == 0:
			report(string(name), unknownCode)
		}
	}
	if len(buffer) > 0 {
		return errors.New("an event is incomplete")
	}
	return nil
}
