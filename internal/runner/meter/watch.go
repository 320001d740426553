package meter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
)

// Watch implements bench.Watch. It reads the clock before it handles the first bytes.
type Watch struct {
	now func() time.Duration
	// flooded is called when the output exceeds bench.MaxOutput.
	flooded func()

	mu       sync.Mutex
	data     []byte
	endless  bool
	first    time.Duration
	last     time.Duration
	gotFirst bool
	line     chan struct{} // closed when the first line is complete
	ended    chan struct{}
	hasLine  bool
	text     string // the first line
	closed   bool
}

// NewWatch returns a Watch on a clock. It calls flooded for too much output.
func NewWatch(clock func() time.Duration, flooded func()) *Watch {
	return &Watch{now: clock, flooded: flooded, line: make(chan struct{}), ended: make(chan struct{})}
}

func (w *Watch) Write(p []byte) (int, error) {
	stamp := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gotFirst && len(p) > 0 {
		w.first, w.gotFirst = stamp, true
	}
	w.last = stamp
	const half = bench.MaxOutput / 2
	if w.endless && len(w.data)+len(p) > bench.MaxOutput {
		w.data = append(w.data[:0], w.data[max(0, len(w.data)-half):]...)
	}
	prefix := p[:min(len(p), bench.MaxOutput-len(w.data))]
	w.data = append(w.data, prefix...)
	if len(prefix) < len(p) {
		w.flooded()
	}
	if !w.hasLine && bytes.IndexByte(prefix, '\n') >= 0 {
		line, _, _ := bytes.Cut(w.data, []byte{'\n'})
		w.hasLine, w.text = true, string(line)
		close(w.line)
	}
	return len(p), nil
}

// Endless implements bench.Watch.
func (w *Watch) Endless() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endless = true
}

// Close ends the output. It is idempotent.
func (w *Watch) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.ended)
	}
	return nil
}

// FirstLine implements bench.Watch.
func (w *Watch) FirstLine(ctx context.Context) (string, time.Duration, error) {
	select {
	case <-w.line:
	case <-w.ended:
	default: // a line that is there counts even if ctx has ended
		select {
		case <-w.line:
		case <-w.ended:
		case <-ctx.Done():
			return "", 0, fmt.Errorf("wait for the first line of output: %w", context.Cause(ctx))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hasLine {
		return "", 0, fmt.Errorf("the output ended before its first line did: %w", io.ErrUnexpectedEOF)
	}
	return w.text, w.first, nil
}

// Last implements bench.Watch.
func (w *Watch) Last() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Ended implements bench.Watch.
func (w *Watch) Ended(ctx context.Context) error {
	select {
	case <-w.ended:
		return nil
	default:
	}
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the output: %w", context.Cause(ctx))
	}
}

// Bytes implements bench.Watch.
func (w *Watch) Bytes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.data)
}
