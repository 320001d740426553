package managed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// logTail is the size of the end of a daemon's log in errors, in bytes.
	logTail = 2 << 10
	// logPipe is the capacity of the pipe for a daemon's output, in bytes. It is the kernel's limit for ordinary users.
	logPipe = 1 << 20
	// logPause is the time between two reads of the pipe. A daemon writes some lines for each container. Each read wakes a thread of this
	// program, perhaps in a timed region, so there is at most one in this time. A flood is read without pauses.
	logPause = time.Second
)

// daemonLog copies a daemon's output from a pipe to a rotation, so that a daemon that writes without end fills neither the memory nor the disk.
//
// Rejected: a file that the daemon writes itself, which no other process can shorten without a wake-up for each line; a file of limited
// size, which loses the end of the log, and with it the reason of a failure.
type daemonLog struct {
	rotation
	read  int      // the end of the pipe that Go does not poll: its poller would wake a thread for each line
	write *os.File // for the daemon
	quit  [2]int   // a pipe that ends run
	ctx   context.Context
	end   context.CancelFunc
	ended chan struct{} // closed when run has returned

	reading sync.Mutex
	closed  bool
}

func openLog(file string) (*daemonLog, error) {
	var pipe, quit [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make a pipe for a log: %w", err)
	}
	if err := unix.Pipe2(quit[:], unix.O_CLOEXEC); err != nil {
		return nil, errors.Join(fmt.Errorf("make a pipe for a log: %w", err), unix.Close(pipe[0]), unix.Close(pipe[1]))
	}
	_ = unix.SetNonblock(pipe[0], true)
	_, _ = unix.FcntlInt(uintptr(pipe[0]), unix.F_SETPIPE_SZ, logPipe) // a small pipe is read more often
	l := &daemonLog{
		rotation: rotation{file: file}, read: pipe[0], write: os.NewFile(uintptr(pipe[1]), "log"), quit: quit, ended: make(chan struct{}),
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	go l.run()
	return l, nil
}

// run copies until close.
func (l *daemonLog) run() {
	defer close(l.ended)
	for l.ctx.Err() == nil {
		ready := []unix.PollFd{{Fd: int32(l.read), Events: unix.POLLIN}, {Fd: int32(l.quit[0]), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if full := l.drain(); !full {
			pause, cancel := context.WithTimeout(l.ctx, logPause)
			<-pause.Done()
			cancel()
		}
	}
}

// drain copies the text in the pipe. It returns true if the pipe was about full.
func (l *daemonLog) drain() (full bool) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if l.closed {
		return false
	}
	var buffer [32 << 10]byte
	for read := 0; read < logPipe/2; {
		n, err := unix.Read(l.read, buffer[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		_, _ = l.Write(buffer[:n]) // it returns no error
		read += n
	}
	return true
}

// tail returns the end of the log, for an error.
func (l *daemonLog) tail() string {
	for l.drain() {
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.last(logTail)), ""))
	if text == "" {
		return ""
	}
	return "; the end of its log:\n" + text
}

// close ends the log. A daemon that still writes gets SIGPIPE. It is idempotent.
func (l *daemonLog) close() error {
	l.reading.Lock()
	wasClosed := l.closed
	l.closed = true
	l.reading.Unlock()
	if wasClosed {
		return nil
	}
	l.end()
	err := unix.Close(l.quit[1])
	<-l.ended
	return errors.Join(err, unix.Close(l.quit[0]), unix.Close(l.read), l.write.Close(), l.rotation.close())
}
