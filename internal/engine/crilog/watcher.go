package crilog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Watcher waits for changes of log files. An engine has one for all of its containers, because the kernel allows a user
// 128 inotify instances by default. The methods may be called from several goroutines.
type Watcher struct {
	inotify *os.File
	fd      int           // of inotify; os.File.Fd would set it to blocking
	ended   chan struct{} // closed when read has returned

	mu        sync.Mutex
	followers map[int]*Follower // by watch descriptor
}

// New makes a watcher. The caller must close it.
func New() (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch log files: %w", os.NewSyscallError("inotify_init1", err))
	}
	w := &Watcher{inotify: os.NewFile(uintptr(fd), "inotify"), fd: fd, ended: make(chan struct{}), followers: map[int]*Follower{}}
	go w.read()
	return w, nil
}

// read passes events on until the watcher is closed.
func (w *Watcher) read() {
	defer close(w.ended)
	var buffer [64 * unix.SizeofInotifyEvent]byte // events of watched files have no names
	for {
		n, err := w.inotify.Read(buffer[:])
		if err != nil {
			return
		}
		w.mu.Lock()
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			descriptor := int(int32(binary.NativeEndian.Uint32(rest)))
			name := int(binary.NativeEndian.Uint32(rest[12:]))
			rest = rest[min(unix.SizeofInotifyEvent+name, len(rest)):]
			if f, ok := w.followers[descriptor]; ok {
				f.wake()
			} else if descriptor < 0 { // events were lost
				for _, f := range w.followers {
					f.wake()
				}
			}
		}
		w.mu.Unlock()
	}
}

// add watches the file of f.
func (w *Watcher) add(f *Follower) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followers == nil {
		return os.ErrClosed
	}
	descriptor, err := unix.InotifyAddWatch(w.fd, f.file.Name(), unix.IN_MODIFY|unix.IN_CLOSE_WRITE)
	if err != nil {
		return os.NewSyscallError("inotify_add_watch", err)
	}
	if w.followers[descriptor] != nil {
		return errors.New("another follower has the log")
	}
	f.descriptor = descriptor
	w.followers[descriptor] = f
	return nil
}

// remove ends the watching for f.
func (w *Watcher) remove(f *Follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followers == nil {
		return
	}
	delete(w.followers, f.descriptor)
	// The watch does not exist any more if the file was removed.
	_, _ = unix.InotifyRmWatch(w.fd, uint32(f.descriptor))
}

// Close ends the watching. Followers without Finish end with the log as it is. Close is idempotent.
func (w *Watcher) Close() error {
	w.mu.Lock()
	followers := w.followers
	w.followers = nil
	w.mu.Unlock()
	if followers == nil {
		return nil
	}
	err := w.inotify.Close()
	<-w.ended
	for _, f := range followers {
		f.Abandon()
	}
	return err
}
