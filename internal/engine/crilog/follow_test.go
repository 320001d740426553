package crilog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// sink keeps all data, reports each write, and counts calls of Close.
type sink struct {
	mu     sync.Mutex
	data   bytes.Buffer
	closed int
	wrote  chan string
	fault  error
}

func newSink() *sink { return &sink{wrote: make(chan string, 1000)} }

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed > 0 {
		panic("a write after the end")
	}
	s.wrote <- string(p)
	if s.fault != nil {
		return 0, s.fault
	}
	return s.data.Write(p)
}

func (s *sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *sink) check(t *testing.T, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.data.String(); got != want {
		t.Errorf("the output is %.200q, want %.200q", got, want)
	}
	if s.closed != 1 {
		t.Errorf("the writer was closed %d times, want once", s.closed)
	}
}

func watcher(t *testing.T) *crilog.Watcher {
	t.Helper()
	w, err := crilog.New()
	must.Do(t, err)
	t.Cleanup(func() {
		for range 2 {
			enginetest.Check(t, w.Close())
		}
	})
	return w
}

// open opens a log as an engine does.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	must.Do(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestLinesComeAsTheyAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	out, complaints := newSink(), newSink()
	f, err := watcher(t).Follow(path, out, complaints)
	must.Do(t, err)
	log := open(t, path)
	write(t, log, "T stdout F ready\n")
	if got := <-out.wrote; got != "ready\n" {
		t.Errorf("the first write is %q", got)
	}
	write(t, log, "T stderr P oh")
	write(t, log, ", \nT stdout P one \nT stderr F dear\nT stdout P two \nT std")
	write(t, log, "out F three\nT stdout F \nT stdout P no end\n")
	must.Do(t, log.Close())
	for range 2 {
		enginetest.Check(t, f.Finish(t.Context()))
	}
	out.check(t, "ready\none two three\n\nno end")
	complaints.check(t, "oh, dear\n")
}

// Finish waits for an engine that still writes after the container's exit.
func TestFinishWaitsForTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	out := newSink()
	f, err := watcher(t).Follow(path, out, nil)
	must.Do(t, err)
	log := open(t, path)
	deadCtx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Finish(deadCtx); !errors.Is(err, context.Canceled) {
		t.Errorf("Finish with a log that is open for writing: %v", err)
	}
	result := make(chan error)
	go func() { result <- f.Finish(t.Context()) }()
	want := strings.Repeat("0123456789", 10_000) + "\n"
	write(t, log, "T stdout F "+want)
	<-out.wrote
	select {
	case err := <-result:
		t.Errorf("Finish returned %v although the log is open", err)
	default:
	}
	write(t, log, "T stdout F last\n")
	must.Do(t, log.Close())
	enginetest.Check(t, <-result)
	out.check(t, want+"last\n")
}

// Finish notices that the last writer has closed the log, also if the event of it came too early.
func TestFinishWithoutLastEvent(t *testing.T) {
	path, w := filepath.Join(t.TempDir(), "log"), watcher(t)
	synctest.Test(t, func(t *testing.T) {
		f, err := w.Follow(path, newSink(), nil)
		must.Do(t, err)
		log := open(t, path)
		f.Unwatch()
		result := make(chan error)
		go func() { result <- f.Finish(t.Context()) }()
		synctest.Wait() // the follower has seen that the log is open
		must.Do(t, log.Close())
		if err := <-result; err != nil { // no event comes
			t.Error(err)
		}
	})
}

// Abandon ends the copy of a log that stays open, with its lines so far.
func TestAbandon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	out := newSink()
	f, err := watcher(t).Follow(path, out, nil)
	must.Do(t, err)
	write(t, open(t, path), "T stdout F one\n")
	for range 2 {
		f.Abandon()
	}
	enginetest.Check(t, f.Finish(t.Context()))
	out.check(t, "one\n")
}

// A container that was never started has an empty log.
func TestLogWithoutWriter(t *testing.T) {
	out, complaints := newSink(), newSink()
	f, err := watcher(t).Follow(filepath.Join(t.TempDir(), "log"), out, complaints)
	must.Do(t, err)
	enginetest.Check(t, f.Finish(t.Context()))
	out.check(t, "")
	complaints.check(t, "")
}

func TestExistingLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must.Do(t, os.WriteFile(path, []byte("T stdout F before\n"), 0o600))
	out := newSink()
	w := watcher(t)
	f, err := w.Follow(path, out, nil)
	must.Do(t, err)
	if _, err := w.Follow(path, nil, nil); err == nil || !strings.Contains(err.Error(), "another follower") {
		t.Errorf("a second follower of the same log: %v", err)
	}
	must.Do(t, os.Remove(path))
	enginetest.Check(t, f.Finish(t.Context()))
	out.check(t, "before\n")
}

// Finish reports the errors of a log. The correct lines are copied.
func TestBadLogs(t *testing.T) {
	for _, tt := range []struct{ name, log, want, err string }{
		{"a line", "T stdout F one\nnonsense\nT stdout F three\nmore\n", "one\nthree\n", "line 2: it is not of the form"},
		{"no end", "T stdout F one\nT stdout F tw", "one\n", "line 2: it is incomplete"},
		{"a long line", "T stdout F one\nT stdout F " + strings.Repeat("x", 3<<20) + "\nT stdout F three\n", "one\nthree\n", "line 2: it is longer than 1048576 bytes"},
		{"nothing but one long line", strings.Repeat("x", 3<<20), "", "line 1: it is longer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			must.Do(t, os.WriteFile(path, []byte(tt.log), 0o600))
			out := newSink()
			f, err := watcher(t).Follow(path, out, nil)
			must.Do(t, err)
			for range 2 {
				if err := f.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Finish: %v, want %q", err, tt.err)
				}
			}
			out.check(t, tt.want)
		})
	}
}

// A writer that fails gets no further data, is closed, and does not stop the other writer.
func TestWriterThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must.Do(t, os.WriteFile(path, []byte("T stdout F one\nT stderr F two\nT stdout F three\n"), 0o600))
	out, complaints := newSink(), newSink()
	out.fault = errors.New("no space left")
	f, err := watcher(t).Follow(path, out, complaints)
	must.Do(t, err)
	enginetest.Check(t, f.Finish(t.Context()))
	out.check(t, "")
	complaints.check(t, "two\n")
	if len(out.wrote) != 1 {
		t.Errorf("%d writes to a writer that has failed, want 1", len(out.wrote))
	}
}

func TestFollowRefuses(t *testing.T) {
	w := watcher(t)
	dir := t.TempDir()
	if _, err := w.Follow(filepath.Join(dir, "none", "log"), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Follow without a directory: %v", err)
	}
	link := filepath.Join(dir, "link")
	must.Do(t, os.Symlink("/etc/passwd", link))
	if _, err := w.Follow(link, nil, nil); err == nil {
		t.Error("Follow follows a link")
	}
	must.Do(t, w.Close())
	if _, err := w.Follow(filepath.Join(dir, "log"), nil, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Follow with a closed watcher: %v", err)
	}
}

// Close of the watcher ends followers without Finish.
func TestCloseEndsFollowers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	out := newSink()
	w := watcher(t)
	f, err := w.Follow(path, out, nil)
	must.Do(t, err)
	write(t, open(t, path), "T stdout F one\n")
	must.Do(t, w.Close())
	out.check(t, "one\n")
	enginetest.Check(t, f.Finish(t.Context()))
}

// Many logs at once leave nothing behind.
func TestManyLogs(t *testing.T) {
	w := watcher(t)
	dir := t.TempDir()
	enginetest.Steady(t, 10, func(number int) {
		var wg sync.WaitGroup
		for n := range 40 {
			path := filepath.Join(dir, fmt.Sprintf("%d-%d", number, n))
			out := newSink()
			f, err := w.Follow(path, out, nil)
			must.Do(t, err)
			wg.Go(func() {
				log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err != nil {
					t.Error(err)
					return
				}
				var want strings.Builder
				for line := range 20 {
					fmt.Fprintf(log, "T stdout F line %d\n", line)
					fmt.Fprintf(&want, "line %d\n", line)
				}
				enginetest.Check(t, errors.Join(log.Close(), f.Finish(t.Context())))
				out.check(t, want.String())
			})
		}
		wg.Wait()
	})
}
