package enginetest

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// testSteps checks that the timed region of each method holds exactly its recorded steps: no request to a daemon and no
// start of a process lies in the region outside of a step. Apart from Wait and Pause, which may confirm their result after
// the region, a method makes no request outside of its region either.
//
// Invariant timed-region.
// Invariant no-polling: No timed region polls: every wait has an event, and confirmations follow the region. The exception is one recorded step
// of containerd (ADR 11).
func (s *suite) testSteps(t *testing.T) {
	for _, running := range []bool{true, false} {
		args := probe.Exit(3)
		if running {
			args = probe.Ready()
		}
		spec := s.spec(args)
		var b testContainer
		s.exact(t, "Create", func(ctx context.Context) error {
			c, err := repeatUnsealed(t, func() (engine.Container, error) { return s.engine.Create(ctx, spec) })
			if err == nil {
				s.deleteAfter(t, c)
				b = newTestContainer(c, spec)
			}
			return err
		})
		s.exact(t, "Start", b.Start)
		if running {
			s.wantReady(t, b)
			s.exactOptions(t, b)
			s.exact(t, "Kill", func(ctx context.Context) error { return b.Kill(ctx, sigkill) })
		}
		s.exact(t, "Wait", func(ctx context.Context) error {
			_, err := b.Wait(ctx)
			return err
		})
		s.exact(t, "Delete", b.Delete)
	}
}

// exactOptions checks the optional methods of a running container.
func (s *suite) exactOptions(t *testing.T, b testContainer) {
	t.Helper()
	if s.engine.Supports(engine.CanExec) == nil {
		s.exact(t, "Exec", func(ctx context.Context) error {
			_, err := repeatSilent(t, func() (engine.Exit, error) {
				return optional[engine.Execer](t, b).Exec(ctx, engine.Process{Args: probe.Exit(0)})
			})
			return err
		})
	}
	if s.engine.Supports(engine.CanPause) == nil {
		p := optional[engine.Pauser](t, b)
		s.exact(t, "Pause", p.Pause)
		s.exact(t, "Resume", p.Resume)
	}
	if s.engine.Supports(engine.CanUpdate) == nil {
		s.exact(t, "Update", func(ctx context.Context) error {
			return optional[engine.Updater](t, b).Update(ctx, engine.Resources{CPU: 0.5})
		})
	}
	if s.engine.Supports(engine.CanStats) == nil {
		s.exact(t, "Stats", func(ctx context.Context) error {
			_, err := optional[engine.Meter](t, b).Stats(ctx)
			return err
		})
	}
}

// exact makes a call and checks its requests against its steps.
func (s *suite) exact(t *testing.T, method string, call func(context.Context) error) {
	t.Helper()
	w := watcher{started: s.Started}
	ctx := engine.WithStopwatch(s.context(t), w.step)
	ctx = engine.WithTracer(ctx, w.request)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(hostPort string) { w.request("HTTP to " + hostPort) }})
	w.processes()
	if err := call(ctx); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	w.processes()
	confirms := method == "Wait" || method == "Pause"
	if err := w.check(confirms); err != nil {
		t.Errorf("%s: %v; it made %s", method, err, w.String())
	}
}

// watcher records the steps of one call, and its requests and starts of processes.
type watcher struct {
	started func() int64 // number of processes so far; nil if it is not known

	mu     sync.Mutex
	before int64 // processes that were recorded
	events []event
}

// event is the begin or end of a step, or a request.
type event struct {
	name string
	kind eventKind
}

type eventKind int

const (
	request eventKind = iota
	stepBegins
	stepEnds
)

func (w *watcher) add(name string, kind eventKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{name, kind})
}

func (w *watcher) request(name string) { w.add(name, request) }

func (w *watcher) step(name string, call func() error) error {
	w.processes()
	w.add(name, stepBegins)
	err := call()
	w.processes()
	w.add(name, stepEnds)
	return err
}

// processes records the processes that have started since the last time.
func (w *watcher) processes() {
	if w.started == nil {
		return
	}
	count := w.started()
	for w.before > 0 && w.before < count {
		w.request("a process")
		w.before++
	}
	w.before = count
}

// check reports a request outside of the steps. confirms allows requests after the last step.
func (w *watcher) check(confirms bool) error {
	last := -1
	for i, e := range w.events {
		if e.kind == stepEnds {
			last = i
		}
	}
	if last < 0 {
		if n := len(w.events); n > 1 {
			return fmt.Errorf("it has %d requests and no steps", n)
		}
		return nil
	}
	inStep := false
	for i, e := range w.events {
		switch {
		case e.kind == stepBegins && inStep:
			return fmt.Errorf("the step %q lies within another one", e.name)
		case e.kind != request:
			inStep = e.kind == stepBegins
		case !inStep && (!confirms || i < last):
			return fmt.Errorf("%s is in no step", e.name)
		}
	}
	return nil
}

func (w *watcher) String() string {
	var events []string
	for _, e := range w.events {
		events = append(events, []string{"request ", "begin of step ", "end of step "}[e.kind]+e.name)
	}
	return strings.Join(slices.Clip(events), ", ")
}
