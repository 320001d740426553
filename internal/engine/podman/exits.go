package podman

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// exits receives the exit codes of containers. conmon writes the code to a file with the container's ID as its name, and renames
// the complete file to it.
type exits struct {
	dir    string
	events *os.File
	ended  chan struct{} // closed when the watch has ended

	mu      sync.Mutex
	waiting map[string]*exit // by container
}

// exit is the exit of one container, or the reason why it is not known, once done is closed.
type exit struct {
	done chan struct{}
	engine.Exit
	err error
}

// watchExits starts to watch the directory, which must exist.
func watchExits(dir string) (*exits, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch for exit files: %w", os.NewSyscallError("inotify_init1", err))
	}
	x := &exits{dir: dir, events: os.NewFile(uintptr(fd), "inotify"), ended: make(chan struct{}), waiting: map[string]*exit{}}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE); err != nil {
		_ = x.events.Close()
		return nil, fmt.Errorf("watch for exit files in %s: %w", dir, os.NewSyscallError("inotify_add_watch", err))
	}
	go x.read()
	return x, nil
}

// await starts to wait for the exit of a container.
func (x *exits) await(id string) *exit {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &exit{done: make(chan struct{})}
	x.waiting[id] = e
	x.look(id) // the file may exist already
	return e
}

// known reports whether a container's exit file exists, without waiting for its event.
func (x *exits) known(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(id)
	_, isWaiting := x.waiting[id]
	return !isWaiting
}

// finish ends the wait for a removed container. Without an exit file the given exit or error counts.
func (x *exits) finish(id string, fallback engine.Exit, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(id)
	if e, ok := x.waiting[id]; ok {
		e.Exit, e.err = fallback, err
		delete(x.waiting, id)
		close(e.done)
	}
}

// read handles events until the watch is closed.
func (x *exits) read() {
	defer close(x.ended)
	var buffer [16 << 10]byte
	for {
		n, err := x.events.Read(buffer[:])
		if err != nil {
			return
		}
		x.mu.Lock()
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			mask := binary.NativeEndian.Uint32(rest[4:])
			length := int(binary.NativeEndian.Uint32(rest[12:]))
			name := rest[unix.SizeofInotifyEvent:][:length]
			rest = rest[unix.SizeofInotifyEvent+length:]
			if mask&unix.IN_Q_OVERFLOW != 0 {
				for id := range x.waiting {
					x.look(id)
				}
				continue
			}
			x.look(string(bytes.TrimRight(name, "\x00")))
		}
		x.mu.Unlock()
	}
}

// look reads the exit file of an awaited container, if it exists. x.mu is held.
func (x *exits) look(id string) {
	e, ok := x.waiting[id]
	if !ok {
		return
	}
	text, err := os.ReadFile(filepath.Join(x.dir, id))
	if err != nil {
		return // not yet
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		e.err = fmt.Errorf("conmon's exit file contains %.40q, which is not an exit code", text)
	}
	e.Exit = engine.ExitOfCode(code)
	delete(x.waiting, id)
	close(e.done)
}

func (x *exits) close() error {
	err := x.events.Close()
	<-x.ended
	return err
}
