package enginetest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
)

// output keeps the output of a process.
type output struct {
	mu     sync.Mutex
	data   bytes.Buffer
	closes int
	line   chan struct{} // closed with the first line
	ended  chan struct{} // closed with the output
}

func newOutput() *output {
	return &output{line: make(chan struct{}), ended: make(chan struct{})}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	had := bytes.IndexByte(o.data.Bytes(), '\n') >= 0
	o.data.Write(p)
	if !had && bytes.IndexByte(p, '\n') >= 0 {
		close(o.line)
	}
	return len(p), nil
}

func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closes++; o.closes == 1 {
		close(o.ended)
	}
	return nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// isClosed reports whether Close was called.
func (o *output) isClosed() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// firstLine waits for the first line and returns it without the newline.
func (o *output) firstLine(ctx context.Context) (string, error) {
	select {
	case <-o.line:
	case <-o.ended:
	case <-ctx.Done():
		return o.String(), context.Cause(ctx)
	}
	line, _, found := strings.Cut(o.String(), "\n")
	if !found {
		return line, io.ErrUnexpectedEOF
	}
	return line, nil
}
