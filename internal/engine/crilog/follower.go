package crilog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Follower copies one log to two writers.
type Follower struct {
	watcher    *Watcher
	file       *os.File
	descriptor int
	writers    [2]io.Writer // by stream
	broken     [2]bool      // writers that have failed, and get no further data
	line       []byte       // the beginning of an incomplete line
	number     int          // number of lines so far
	skipping   bool         // the current line is too long, and its rest is dropped

	changed   chan struct{} // holds one item if the file has changed since it was last read
	finishing chan struct{} // closed when the container has ended
	finish    sync.Once
	abandoned chan struct{} // closed by Abandon
	abandon   sync.Once
	done      chan struct{} // closed when the writers are closed
	err       error         // the first error
}

// Follow copies the output in the log at path, from its beginning and as it comes, until Finish is called. It makes a
// missing file, but not its directory. A nil writer discards. A writer that is an io.Closer is closed after the last
// byte. A writer that fails gets no further data. Its failure is no error of Follow.
func (w *Watcher) Follow(path string, toStdout, toStderr io.Writer) (*Follower, error) {
	// Engines append to an existing file. The mode is the mode that engines use.
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o640)
	if err != nil {
		return nil, fmt.Errorf("follow a log: %w", err)
	}
	f := &Follower{
		watcher: w, file: file, writers: [2]io.Writer{stdout: toStdout, stderr: toStderr},
		changed: make(chan struct{}, 1), finishing: make(chan struct{}), abandoned: make(chan struct{}), done: make(chan struct{}),
	}
	for n, w := range f.writers {
		if w == nil {
			f.writers[n] = io.Discard
		}
	}
	if err = w.add(f); err == nil {
		if _, err = f.written(); err != nil {
			w.remove(f)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("follow log %s: %w", path, err), file.Close())
	}
	go f.run()
	return f, nil
}

// Finish must be called after the container's exit. It returns when the last writer of the log has closed it, the whole
// log is copied, and the follower's writers are closed. The error is the context's, or the first error in the log.
// Finish may be called again.
func (f *Follower) Finish(ctx context.Context) error {
	f.finish.Do(func() { close(f.finishing) })
	select {
	case <-f.done:
		return f.err
	default:
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of log %s, which something still holds open: %w", f.file.Name(), context.Cause(ctx))
	}
}

// Abandon ends with the log as it is, and closes the follower's writers. It is for a log that an engine holds open for good. Finish
// then returns at once.
func (f *Follower) Abandon() {
	f.abandon.Do(func() { close(f.abandoned) })
	<-f.done
}

// wake reports a change of the file to run.
func (f *Follower) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// written reports whether a process has the file open for writing.
func (f *Follower) written() (bool, error) {
	_, err := unix.FcntlInt(f.file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("take a read lease: %w", os.NewSyscallError("fcntl", err))
	}
	// The lease ends at once: it delays processes that open the file for writing.
	if _, err := unix.FcntlInt(f.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		return false, fmt.Errorf("release a read lease: %w", os.NewSyscallError("fcntl", err))
	}
	return false, nil
}

// run copies until the end.
func (f *Follower) run() {
	defer close(f.done)
	defer f.watcher.remove(f)
	buffer := make([]byte, 4<<10)
	last := false // no process has the file open for writing: the next end of the file is the end of the log
	for {
		n, err := f.file.Read(buffer)
		f.split(buffer[:n])
		if n > 0 {
			continue
		}
		if !errors.Is(err, io.EOF) {
			f.note(err)
			break
		}
		if last {
			break
		}
		if last, err = f.pause(); err != nil {
			f.note(err)
			break
		}
	}
	if len(f.line) > 0 {
		f.note(f.wrong(errors.New("it is incomplete")))
	}
	f.note(f.file.Close())
	for _, w := range f.writers {
		if c, ok := w.(io.Closer); ok {
			_ = c.Close()
		}
	}
}

// pause waits for a change, and reports whether it was the last one.
func (f *Follower) pause() (last bool, err error) {
	select {
	case <-f.changed:
		return false, nil
	case <-f.abandoned:
		return true, nil
	case <-f.finishing:
	}
	hasLines, err := f.written()
	if err != nil || !hasLines {
		return true, err
	}
	// The kernel reports that a writer has closed the file before it accepts a lease again, and reports nothing then.
	pauseCtx, cancel := context.WithTimeout(context.Background(), leasePause)
	defer cancel()
	select {
	case <-f.changed:
	case <-pauseCtx.Done():
	case <-f.abandoned:
		return true, nil
	}
	return false, nil
}

// leasePause is the longest wait for the last writer without another look.
const leasePause = 50 * time.Millisecond

// split copies the lines that data completes.
func (f *Follower) split(data []byte) {
	for len(data) > 0 {
		part, rest, hasNewline := bytes.Cut(data, []byte("\n"))
		data = rest
		if !f.skipping {
			f.line = append(f.line, part...)
		}
		if len(f.line) > longestLine {
			f.note(f.wrong(fmt.Errorf("it is longer than %d bytes", longestLine)))
			f.line, f.skipping = f.line[:0], true
		}
		if !hasNewline {
			return
		}
		if !f.skipping {
			f.pass(f.line)
		}
		f.line, f.skipping = f.line[:0], false
		f.number++
	}
}

// pass writes the text of one line of the log.
func (f *Follower) pass(line []byte) {
	e, err := parse(line)
	if err != nil {
		f.note(f.wrong(err))
		return
	}
	text := e.text
	if !e.partial {
		text = append(text, '\n') // one write for line and newline, in the capacity of f.line
	}
	if len(text) == 0 || f.broken[e.stream] {
		return
	}
	_, err = f.writers[e.stream].Write(text)
	f.broken[e.stream] = err != nil
}

// note keeps the first error.
func (f *Follower) note(err error) {
	if f.err == nil {
		f.err = err
	}
}

// wrong adds the place in the log to an error.
func (f *Follower) wrong(err error) error {
	return fmt.Errorf("log %s, line %d: %w", f.file.Name(), f.number+1, err)
}
