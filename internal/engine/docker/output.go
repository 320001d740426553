package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// stream carries the output of a process from the daemon to writers.
type stream struct {
	from client.HijackedResponse
	done chan struct{} // closed when the writers are closed
	err  error         // once done is closed: the reason why the output is incomplete
}

// copyOutput starts to copy until the output or the connection ends.
func copyOutput(from client.HijackedResponse, p engine.Process) *stream {
	s := &stream{from: from, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_, s.err = stdcopy.StdCopy(&sink{w: p.Stdout}, &sink{w: p.Stderr}, from.Reader)
		p.CloseOutput()
		from.Close()
	}()
	return s
}

// stop ends the copying early.
func (s *stream) stop() { s.from.Close() }

// wait returns when all output has been copied.
func (s *stream) wait(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the output: %w", context.Cause(ctx))
	}
}

// sink writes to w, which may be nil, until w fails. It discards the rest, because a failing writer must not block the
// container.
type sink struct {
	w      io.Writer
	failed bool
}

func (s *sink) Write(p []byte) (int, error) {
	if s.w != nil && !s.failed {
		_, err := s.w.Write(p)
		s.failed = err != nil
	}
	return len(p), nil
}

// headSize is the size of the kept beginning of an output in bytes.
const headSize = 1 << 10

// head keeps the beginning of an output on its way to a writer.
type head struct {
	sink
	kept bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), headSize-h.kept.Len())])
	return h.sink.Write(p)
}

// Close closes the writer.
func (h *head) Close() error {
	if c, ok := h.w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
