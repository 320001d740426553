package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// tailSize is how much of standard error is kept for messages, in bytes.
const tailSize = 4 << 10

// Output carries the output of a process from pipes to writers. Pipes, because that
// is what every runtime passes on as it is: some versions of runsc write into a
// regular file from offset 0. The zero value is ready for Open.
type Output struct {
	stdout, stderr *os.File // the write ends, ours until the process has started
	copying        atomic.Int32
	copied         chan struct{} // closed when nothing is copied any more
	tail           tail
}

// Open makes the pipes and begins to copy. A nil writer discards; a writer that is
// an io.Closer is closed after the last byte.
func (o *Output) Open(stdout, stderr io.Writer) (err error) {
	o.copied = make(chan struct{})
	o.copying.Store(1) // until all pipes are made
	defer o.copyEnds()
	if o.stdout, err = o.pipe(stdout); err != nil {
		return fmt.Errorf("make a pipe for output: %w", err)
	}
	if o.stderr, err = o.pipe(&tee{&o.tail, stderr}); err != nil {
		_ = o.Close()
		return fmt.Errorf("make a pipe for output: %w", err)
	}
	return nil
}

func (o *Output) pipe(w io.Writer) (*os.File, error) {
	if w == nil {
		// Not /dev/null: runtimes replace that by the container's own, and youki then
		// makes it one that cannot be written.
		w = io.Discard
	}
	// os.Pipe would have Go's poller look after our write end, too, which we only pass on.
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	_ = unix.SetNonblock(ends[0], true) // by which package os knows what to poll
	r := os.NewFile(uintptr(ends[0]), "|0")
	o.copying.Add(1)
	go func() {
		copyAll(w, r)
		_ = r.Close()
		if c, ok := w.(io.Closer); ok {
			_ = c.Close()
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

// copyAll copies with a buffer far smaller than io.Copy's, since every container has two
// of them. A writer that fails must not block the container: the rest is discarded.
func copyAll(w io.Writer, r io.Reader) {
	buffer := make([]byte, 4<<10)
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				w = io.Discard
			}
		}
		if err != nil {
			return
		}
	}
}

// Wait returns when all output has been copied, which is when no process holds the
// write ends any more.
func (o *Output) Wait(ctx context.Context) error {
	if o.copied == nil {
		return nil // it was not opened
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
		return fmt.Errorf("wait for the end of the output, which something still holds open: %w", context.Cause(ctx))
	}
}

// Tail is the end of what came on standard error.
func (o *Output) Tail() string { return o.tail.String() }

// Set gives the write ends to a command.
func (o *Output) Set(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = o.Files() }

// Files gives the write ends.
func (o *Output) Files() (stdout, stderr *os.File) { return o.stdout, o.stderr }

// Close closes our copies of the write ends. It is idempotent.
func (o *Output) Close() error {
	for _, f := range []**os.File{&o.stdout, &o.stderr} {
		if *f != nil {
			_ = (*f).Close()
			*f = nil
		}
	}
	return nil
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - tailSize; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.data)
}

// tee keeps the tail of what goes to a writer, which may be nil.
type tee struct {
	*tail
	w io.Writer
}

func (t *tee) Write(p []byte) (int, error) {
	_, _ = t.tail.Write(p)
	if t.w == nil {
		return len(p), nil
	}
	return t.w.Write(p)
}

// Close closes the writer if it can be closed.
func (t *tee) Close() error {
	if c, ok := t.w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
