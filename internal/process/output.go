package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// tailSize is the size in bytes of the part of standard error that error messages include.
const tailSize = 4 << 10

// Output copies the output of a process from pipes to writers. Every runtime passes a pipe on unchanged. With a regular file some
// versions of runsc write from offset 0. The zero value is ready for Open.
type Output struct {
	stdout, stderr *os.File      // the write ends, open here until the process has started
	copying        atomic.Int32  // the number of unfinished copies
	copied         chan struct{} // closed when all copies are finished
	tail           tail
}

// Open creates the pipes and starts to copy. The output for a nil writer is discarded. A writer that is an io.Closer is closed
// after the last byte.
func (o *Output) Open(stdout, stderr io.Writer) (err error) {
	o.copied = make(chan struct{})
	o.copying.Store(1) // for Open itself, until both pipes exist
	defer o.copyEnds()
	if o.stdout, err = o.pipe(stdout); err == nil {
		o.stderr, err = o.pipe(&o.tail, stderr)
	}
	if err != nil {
		_ = o.Close()
		return fmt.Errorf("create a pipe for output: %w", err)
	}
	return nil
}

// pipe starts to copy from a new pipe, and returns its write end. Without a writer the output is discarded. A pipe and not /dev/null:
// runtimes replace /dev/null by the container's device, and youki's is then not writable.
func (o *Output) pipe(writers ...io.Writer) (*os.File, error) {
	// os.Pipe would also add the write end to Go's poller, though only the child uses it.
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(ends[0], true) // package os polls only nonblocking descriptors
	r := os.NewFile(uintptr(ends[0]), "|0")
	o.copying.Add(1)
	go func() {
		writers = slices.DeleteFunc(writers, func(w io.Writer) bool { return w == nil })
		copyAll(slices.Clone(writers), r)
		_ = r.Close()
		for _, w := range writers {
			if c, ok := w.(io.Closer); ok {
				_ = c.Close()
			}
		}
		o.copyEnds()
	}()
	return os.NewFile(uintptr(ends[1]), "|1"), nil
}

func (o *Output) copyEnds() {
	if o.copying.Add(-1) == 0 {
		close(o.copied)
	}
}

// buffers are the buffers of copyAll.
var buffers = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// copyAll copies from a pipe to its end. It holds a buffer only while it has output: most containers are silent most of the time, and
// the buffers of a thousand of them would take a third of this program's memory. If a writer fails, copyAll discards the rest, so
// that the container does not block.
func copyAll(writers []io.Writer, r *os.File) {
	conn, err := r.SyscallConn()
	if err != nil {
		return
	}
	var buffer *[4 << 10]byte
	var n int
	var failed error
	read := func(fd uintptr) (done bool) {
		buffer = buffers.Get().(*[4 << 10]byte)
		n, failed = unix.Read(int(fd), buffer[:])
		if done = failed != unix.EAGAIN; !done {
			buffers.Put(buffer)
		}
		return done
	}
	for {
		if err := conn.Read(read); err != nil {
			return
		}
		if failed == nil && n > 0 {
			writers = slices.DeleteFunc(writers, func(w io.Writer) bool {
				_, err := w.Write(buffer[:n])
				return err != nil
			})
		}
		buffers.Put(buffer)
		if failed != nil && failed != unix.EINTR || failed == nil && n == 0 {
			return
		}
	}
}

// Wait returns when all output has been copied. Before that, all processes must have closed the write ends.
func (o *Output) Wait(ctx context.Context) error {
	if o.copied == nil {
		return nil // Open was not called
	}
	select {
	case <-o.copied:
		return nil
	default:
	}
	select {
	case <-o.copied:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the output, because a process still holds it open: %w", context.Cause(ctx))
	}
}

// Tail returns the end of standard error.
func (o *Output) Tail() string { return o.tail.String() }

// Set connects the write ends to a command.
func (o *Output) Set(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = o.Files() }

// Files returns the write ends.
func (o *Output) Files() (stdout, stderr *os.File) { return o.stdout, o.stderr }

// Close closes this program's copies of the write ends. It is idempotent.
func (o *Output) Close() error {
	for _, f := range []**os.File{&o.stdout, &o.stderr} {
		if *f != nil {
			_ = (*f).Close()
			*f = nil
		}
	}
	return nil
}

// tail is a writer that keeps the last tailSize bytes.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if excess := len(t.data) - tailSize; excess > 0 {
		t.data = append(t.data[:0], t.data[excess:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}
