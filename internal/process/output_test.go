package process_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// sink stores the written bytes and counts calls of Close. Writes fail from number fault on.
type sink struct {
	mu     sync.Mutex
	data   bytes.Buffer
	writes int
	closed int
	fault  int
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.closed > 0 {
		panic("a write after the end")
	}
	if s.fault > 0 && s.writes >= s.fault {
		return 0, errors.New("no space left")
	}
	return s.data.Write(p)
}

func (s *sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *sink) ends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// carry runs a shell script with an Output that copies to two writers.
func carry(t *testing.T, stdout, stderr io.Writer, script string) *process.Output {
	t.Helper()
	l, err := process.New(process.Options{}) // closed before carry returns, because a program can have only one launcher
	must.Do(t, err)
	var o process.Output
	must.Do(t, o.Open(stdout, stderr))
	cmd := exec.Command("/bin/sh", "-c", script)
	o.Set(cmd)
	must.Do(t, errors.Join(l.Run(t.Context(), cmd), o.Close(), o.Wait(t.Context()), l.Close()))
	return &o
}

func TestOutputIsComplete(t *testing.T) {
	var out, complaints sink
	// More than the capacity of a pipe, on both pipes at once.
	carry(t, &out, &complaints, `i=0; while [ $i -lt 4000 ]; do echo "out $i: 0123456789012345678901234567890123456789"; echo "err $i" >&2; i=$((i+1)); done`)
	for name, s := range map[string]*sink{"out": &out, "err": &complaints} {
		lines := slices.Collect(strings.Lines(s.data.String()))
		if len(lines) != 4000 {
			t.Fatalf("%s has %d lines, want 4000", name, len(lines))
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, name+" ") || !strings.HasSuffix(line, "\n") {
				t.Fatalf("line %d of %s is %q", i, name, line)
			}
		}
		if s.closed != 1 {
			t.Errorf("%s was closed %d times", name, s.closed)
		}
	}
}

func TestTail(t *testing.T) {
	const bound = 4 << 10
	o := carry(t, nil, nil, `i=0; while [ $i -lt 2000 ]; do echo "line $i" >&2; echo noise; i=$((i+1)); done`)
	tail := o.Tail()
	if len(tail) != bound || !strings.HasSuffix(tail, "line 1998\nline 1999\n") {
		t.Errorf("the tail has %d bytes and ends %q", len(tail), tail[max(0, len(tail)-30):])
	}
	var complaints sink
	if o = carry(t, nil, &complaints, "echo short >&2"); o.Tail() != "short\n" || complaints.data.String() != "short\n" {
		t.Errorf("the tail is %q and the output %q", o.Tail(), &complaints.data)
	}
	if o = carry(t, nil, nil, "echo out"); o.Tail() != "" {
		t.Errorf("the tail contains standard output: %q", o.Tail())
	}
}

// A failing writer must not block the process or the other writer.
func TestFailingWriter(t *testing.T) {
	out, complaints := sink{fault: 2}, sink{}
	o := carry(t, &out, &complaints, `i=0; while [ $i -lt 8000 ]; do echo "line $i of a long discarded output"; i=$((i+1)); done; echo end >&2`)
	if out.writes != 2 || out.closed != 1 {
		t.Errorf("%d writes and %d calls of Close, want 2 writes (the second fails) and 1 call", out.writes, out.closed)
	}
	if complaints.data.String() != "end\n" || o.Tail() != "end\n" {
		t.Errorf("standard error is %q and its tail %q", &complaints.data, o.Tail())
	}
	out, complaints = sink{}, sink{fault: 1}
	if o = carry(t, &out, &complaints, "echo end >&2"); o.Tail() != "end\n" {
		t.Errorf("the tail is %q when the writer fails", o.Tail())
	}
}

// A process left behind holds the pipes. Wait returns when the context ends or the process exits.
func TestWaitForHeldOutput(t *testing.T) {
	l := launcher(t, process.Options{})
	r, w, err := os.Pipe()
	must.Do(t, err)
	var out sink
	var o process.Output
	must.Do(t, o.Open(&out, nil))
	cmd := exec.Command("/bin/sh", "-c", `(read x <&3; echo last) & echo first`)
	cmd.ExtraFiles = []*os.File{r}
	o.Set(cmd)
	must.Do(t, l.Run(t.Context(), cmd))
	_, _ = o.Close(), r.Close()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := o.Wait(ctx); !errors.Is(err, cause) {
		t.Errorf("Wait() = %v while a process holds the output, want the cause", err)
	}
	if out.ends() > 0 {
		t.Error("the writer was closed before the end")
	}
	_ = w.Close()
	for range 2 {
		if err := o.Wait(t.Context()); err != nil {
			t.Errorf("Wait() = %v after the process has exited", err)
		}
	}
	if out.data.String() != "first\nlast\n" || out.closed != 1 {
		t.Errorf("output %q, closed %d times", &out.data, out.closed)
	}
}

// Close ends an Output that was never connected to a process.
func TestOutputWithoutAProcess(t *testing.T) {
	var unopened process.Output
	if err := errors.Join(unopened.Close(), unopened.Wait(t.Context())); err != nil || unopened.Tail() != "" {
		t.Errorf("an output without Open: %v, %q", err, unopened.Tail())
	}
	baseline := descriptors(t)
	var out, complaints sink
	var o process.Output
	must.Do(t, o.Open(&out, &complaints))
	for range 2 {
		must.Do(t, o.Close())
	}
	must.Do(t, o.Wait(t.Context()))
	if out.closed != 1 || complaints.closed != 1 {
		t.Errorf("the writers were closed %d and %d times", out.closed, complaints.closed)
	}
	if openFiles := descriptors(t); openFiles > baseline {
		t.Errorf("%d file descriptors are open, before %d", openFiles, baseline)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must.Do(t, err)
	return len(entries)
}

// Many processes must not leave descriptors, goroutines or zombies.
func TestNoLeaks(t *testing.T) {
	l := launcher(t, process.Options{})
	cycle := func() {
		var out sink
		var o process.Output
		must.Do(t, o.Open(&out, nil))
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "(exit 3) & echo x")
		o.Set(cmd)
		must.Do(t, errors.Join(l.Run(t.Context(), cmd), o.Close(), o.Wait(t.Context())))
		if err := l.Run(t.Context(), exec.Command("/no/such/program")); err == nil {
			t.Fatal("a missing program was started")
		}
	}
	cycle()
	files, goroutines := descriptors(t), runtime.NumGoroutine()
	for range 50 {
		cycle()
	}
	// A goroutine may still be running its last instructions, and no event marks their end.
	for i := 0; i < 100_000 && (descriptors(t) > files || runtime.NumGoroutine() > goroutines); i++ {
		runtime.Gosched()
	}
	if openFiles := descriptors(t); openFiles > files {
		t.Errorf("%d file descriptors are open, before %d", openFiles, files)
	}
	if count := runtime.NumGoroutine(); count > goroutines {
		t.Errorf("%d goroutines, before %d", count, goroutines)
	}
}

// A thousand silent containers must not hold a thousand buffers.
func TestSilentOutputIsSmall(t *testing.T) {
	const outputs, limit = 200, 6 << 10 // two pipes with their goroutines' share of the heap; two buffers alone would be 8 KiB
	inUse := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	list := make([]process.Output, outputs)
	baseline := inUse()
	for i := range list {
		must.Do(t, list[i].Open(nil, nil))
	}
	if size := int64(inUse()-baseline) / outputs; size > limit {
		t.Errorf("an open output takes %d bytes of the heap, want at most %d", size, limit)
	}
	for i := range list {
		must.Do(t, errors.Join(list[i].Close(), list[i].Wait(t.Context())))
	}
}
