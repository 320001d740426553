package meter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// ticks is a clock that advances by a second at each reading.
func ticks() func() time.Duration {
	var mu sync.Mutex
	var clock time.Duration
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		clock += time.Second
		return clock
	}
}

func TestFirstLine(t *testing.T) {
	for _, tt := range []struct {
		name   string
		writes []string
		line   string
		at     time.Duration
		err    error
	}{
		{"whole", []string{"ready\n"}, "ready", time.Second, nil},
		{"in parts", []string{"re", "ad", "y\nmore"}, "ready", time.Second, nil},
		{"after an empty write", []string{"", "ready\n"}, "ready", 2 * time.Second, nil},
		{"empty line", []string{"\n"}, "", time.Second, nil},
		{"line feed first", []string{"a", "\n", "b\n"}, "a", time.Second, nil},
		{"nothing", nil, "", 0, io.ErrUnexpectedEOF},
		{"no end", []string{"read"}, "", 0, io.ErrUnexpectedEOF},
		{"flood without a line", []string{strings.Repeat("x", bench.MaxOutput), "\n"}, "", 0, io.ErrUnexpectedEOF},
		{"flood with the line at its end", []string{strings.Repeat("x", bench.MaxOutput-1), "\n"}, strings.Repeat("x", bench.MaxOutput-1), time.Second, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWatch(ticks(), func() {})
			for _, text := range tt.writes {
				if n, err := io.WriteString(w, text); n != len(text) || err != nil {
					t.Fatalf("Write() = %d, %v", n, err)
				}
			}
			for range 2 { // closing is idempotent
				must.Do(t, w.Close())
			}
			line, stamp, err := w.FirstLine(t.Context())
			if line != tt.line || stamp != tt.at || !errors.Is(err, tt.err) {
				t.Errorf("FirstLine() = %.20q at %v, %v; want %.20q at %v, %v", line, stamp, err, tt.line, tt.at, tt.err)
			}
			if err := w.Ended(t.Context()); err != nil {
				t.Errorf("Ended() = %v", err)
			}
		})
	}
}

func TestWatchLimitsItsOutput(t *testing.T) {
	w := NewWatch(ticks(), func() {})
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	for length := 0; length < 3*bench.MaxOutput; length += len(chunk) {
		if n, err := w.Write(chunk); n != len(chunk) || err != nil {
			t.Fatalf("Write() = %d, %v; a program must not be blocked", n, err)
		}
	}
	got := w.Bytes()
	if len(got) != bench.MaxOutput || !bytes.HasPrefix(got, chunk) {
		t.Errorf("%d bytes are kept, want the first %d", len(got), bench.MaxOutput)
	}
	got[0] = '!'
	if w.Bytes()[0] == '!' {
		t.Error("Bytes returns the watch's own memory")
	}
}

func TestEndlessWatchKeepsTheEnd(t *testing.T) {
	w := NewWatch(ticks(), func() { t.Error("the output counts as a flood") })
	w.Endless()
	const line = "0123456789abcde\n"
	for length := 0; length < 3*bench.MaxOutput; length += 1000 * len(line) {
		if _, err := io.WriteString(w, strings.Repeat(line, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, "the end\n"); err != nil {
		t.Fatal(err)
	}
	got := w.Bytes()
	if len(got) > bench.MaxOutput || !bytes.HasSuffix(got, []byte(line+"the end\n")) {
		t.Errorf("%d bytes are kept, want at most %d with the end of the output", len(got), bench.MaxOutput)
	}
	if first, stamp, err := w.FirstLine(t.Context()); first+"\n" != line || stamp != time.Second || err != nil {
		t.Errorf("FirstLine() = %q at %v, %v", first, stamp, err)
	}
}

func TestWatchStopsWithItsContext(t *testing.T) {
	w := NewWatch(ticks(), func() {})
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(reason)
	if _, _, err := w.FirstLine(ctx); !errors.Is(err, reason) {
		t.Errorf("FirstLine() = %v, want the cause", err)
	}
	if err := w.Ended(ctx); !errors.Is(err, reason) {
		t.Errorf("Ended() = %v, want the cause", err)
	}
	_ = w.Close()
	if err := w.Ended(ctx); err != nil {
		t.Errorf("Ended() = %v after the end", err)
	}
}

// One goroutine writes and many read: a test for the race detector.
func TestWatchIsSharedByGoroutines(t *testing.T) {
	w := NewWatch(ticks(), func() {})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if line, _, err := w.FirstLine(t.Context()); line != "ready" || err != nil {
				t.Errorf("FirstLine() = %q, %v", line, err)
			}
			_ = w.Bytes()
			if err := w.Ended(t.Context()); err != nil {
				t.Errorf("Ended() = %v", err)
			}
		})
	}
	for _, text := range []string{"re", "ady", "\n", "done\n"} {
		_, _ = io.WriteString(w, text)
	}
	_ = w.Close()
	wg.Wait()
	if got := string(w.Bytes()); got != "ready\ndone\n" {
		t.Errorf("Bytes() = %q", got)
	}
}
