package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// tailSize is how much of standard error is kept for messages, in bytes.
const tailSize = 4 << 10

// Output carries the output of a process from pipes to writers. Pipes, because that
// is what every runtime passes on as it is: some versions of runsc write into a
// regular file from offset 0. The zero value is ready for Open.
//
// It has the methods of runc.IO.
type Output struct {
	stdout, stderr *os.File // the write ends, ours until the process has started
	copied         sync.WaitGroup
	tail           tail
}

// Open makes the pipes and begins to copy. A nil writer discards; a writer that is
// an io.Closer is closed after the last byte.
func (o *Output) Open(stdout, stderr io.Writer) (err error) {
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
	r, wr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.copied.Go(func() {
		copyAll(w, r)
		_ = r.Close()
		if c, ok := w.(io.Closer); ok {
			_ = c.Close()
		}
	})
	return wr, nil
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
	done := make(chan struct{})
	go func() {
		o.copied.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the output, which something still holds open: %w", context.Cause(ctx))
	}
}

// Tail is the end of what came on standard error.
func (o *Output) Tail() string { return o.tail.String() }

// Set gives the write ends to a command.
func (o *Output) Set(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = o.stdout, o.stderr }

// CloseAfterStart closes our copies of the write ends.
func (o *Output) CloseAfterStart() error { return o.Close() }

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

// Stdin is nil: processes get no input.
func (o *Output) Stdin() io.WriteCloser { return nil }

// Stdout is nil: output goes to the writers given to Open.
func (o *Output) Stdout() io.ReadCloser { return nil }

// Stderr is nil: output goes to the writers given to Open.
func (o *Output) Stderr() io.ReadCloser { return nil }

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
