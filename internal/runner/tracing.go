package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Tracer counts the work of the processes of a target from its start to its stop.
type Tracer interface {
	// Step makes the counts from now on belong to a step. The empty name stands for the time outside of all calls.
	Step(name string) error
	// Stop returns the counts, or the reason why they are not complete.
	Stop() ([]result.TraceCounts, error)
	// Timeline returns the states of the processes over time after Stop, or nil if they are not known.
	Timeline() *result.TraceTimeline
}

// FunctionTracer counts functions of the kernel, from Attach to Stop.
type FunctionTracer interface {
	Tracer
	// Attach attaches the tracer to the functions. It returns their number and the time that it took.
	Attach() (count int, took time.Duration, err error)
}

// Tracing configures the traces of a run.
type Tracing struct {
	// Count is the number of traces of each cell. Benchmarks whose own trials are traced have no others.
	Count int
	// Start begins a trace. The error is an *engine.UnsupportedError if this machine cannot trace.
	Start func(monitor.Target) (Tracer, error)
	// StartFunctions begins a trace of functions of the kernel, by a FunctionTracer. The error is like Start's.
	StartFunctions func(monitor.Target) (Tracer, error)
	// Done are the traces that an earlier process recorded for this run.
	Done   []result.Trace
	Record func(result.Trace) error
}

// traced is the state of the traces of a cell.
type traced struct {
	count  int    // the number of traces
	ok     bool   // one of them has counts
	reason string // why the last one has none
}

// tracing is the trace of a trial.
type tracing struct {
	start  func(monitor.Target) (Tracer, error) // nil without a tracer
	mu     sync.Mutex
	tracer Tracer   // nil before the trial and after it
	steps  []string // of the benchmark's choice: the last one has the counts. Without one the calls of the engine choose.
	calls  int      // under way
	crowd  bool     // more than one call has been under way since the last time without one
	err    error    // of the tracer
	counts []result.TraceCounts

	timeline *result.TraceTimeline
}

// severalCalls is the step of calls that are under way at once: their work is not separable.
const severalCalls = "several calls at once"

// errOutside is the reason why a trial with processes outside the target has no counts.
var errOutside = &engine.UnsupportedError{What: "the trial's processes", Reason: "some are outside of the target, and a trace does not separate them"}

// traces executes the traced trials, after all others. It returns false if ctx ended before the last one.
func (r *run) traces(ctx context.Context) (complete bool, err error) {
	cells := map[result.Cell]*traced{}
	for i := range r.Tracing.Done {
		t := &r.Tracing.Done[i]
		cells[t.Cell] = cells[t.Cell].with(t)
	}
	for n := range r.Tracing.Count {
		for _, w := range r.Work {
			if w.Benchmark.Traced {
				continue
			}
			for _, index := range r.order(w, n, false) {
				target := r.Targets[index]
				cell := cellOf(w, target.Name)
				state := cells[cell]
				if r.over[cell] || r.failed[cell].over() || r.breaker.quarantined[target.Name] != "" || state != nil && state.count > n {
					continue
				}
				select {
				case <-ctx.Done():
					return false, nil
				default:
				}
				trace, counts := r.trace(ctx, w, target, r.lastTrace+1, n)
				if !counts {
					return false, nil
				}
				if err := r.recordTrace(trace); err != nil {
					return false, err
				}
				state = state.with(&trace)
				if trace.Status == result.Skipped {
					state.count = r.Tracing.Count
				}
				cells[cell] = state
				r.checkUp(ctx, target)
			}
		}
	}
	r.out.Caveats = append(r.out.Caveats, r.withoutCounts(cells)...)
	return true, nil
}

// withoutCounts has a caveat for each reason why cells have no counts. A machine that traces nothing has one reason for all cells.
func (r *run) withoutCounts(cells map[result.Cell]*traced) (caveats []string) {
	var reasons []string
	first, count := map[string]string{}, map[string]int{}
	for _, w := range r.Work {
		for _, target := range r.Targets {
			state := cells[cellOf(w, target.Name)]
			if state == nil || state.ok {
				continue
			}
			if count[state.reason]++; count[state.reason] == 1 {
				reasons = append(reasons, state.reason)
				first[state.reason] = w.Benchmark.Name + " on " + target.Name
			}
		}
	}
	for _, reason := range reasons {
		names := first[reason]
		if n := count[reason]; n > 1 {
			names += fmt.Sprintf(" and %d more", n-1)
		}
		caveats = append(caveats, fmt.Sprintf("no counts of a trace for %s: %s", names, reason))
	}
	return caveats
}

// with returns the state after a trace. It may be called on nil.
func (s *traced) with(t *result.Trace) *traced {
	if s == nil {
		s = &traced{}
	}
	s.count++
	s.ok = s.ok || t.Status == result.OK
	s.reason = t.Reason
	return s
}

// trace executes one traced trial. The second result is false if ctx ended during it.
func (r *run) trace(ctx context.Context, w plan.Work, target Target, seq, block int) (trace result.Trace, counts bool) {
	cell := cellOf(w, target.Name)
	r.Observer.Started(result.Trial{Seq: seq, Cell: cell, Block: block}, Progress{Done: block, Total: r.Tracing.Count, Traces: true})
	t := &tracing{start: r.Tracing.Start}
	trial, counts := r.attempt(ctx, w, target, attempt{name: fmt.Sprintf("trace%d", seq), what: "the traced trial", limit: r.TrialLimit, tracing: t})
	trial.Seq, trial.Cell, trial.Block = seq, cell, block
	if counts {
		r.Observer.Ended(trial)
	}
	return t.of(trial), counts
}

// recordTrace records a trace.
func (r *run) recordTrace(t result.Trace) error {
	if err := r.Tracing.Record(t); err != nil {
		return fmt.Errorf("record trace %d (%s on %s): %w", t.Seq, t.Benchmark, t.Target, err)
	}
	r.lastTrace = t.Seq
	return nil
}

// of is the trace of a trial. It has no counts without a tracer.
func (g *tracing) of(t result.Trial) result.Trace {
	return result.Trace{
		Seq: t.Seq, Cell: t.Cell, Status: t.Status, Reason: t.Reason, Started: t.Started, Elapsed: t.Elapsed, Phases: t.Phases, Counts: g.result(t.Status), Timeline: g.course(t.Status),
	}
}

// course returns the timeline of a trial with a status. The steps of a benchmark's choice have none.
func (g *tracing) course(status result.Status) *result.TraceTimeline {
	if g == nil || status != result.OK || g.steps != nil {
		return nil
	}
	return g.timeline
}

// result returns the counts of a trial with a status. The receiver is nil without a tracer.
func (g *tracing) result(status result.Status) []result.TraceCounts {
	if g == nil || status != result.OK {
		return nil
	}
	return g.counts
}

// observed describes the processes of the trial's target.
func (t *trial) observed() monitor.Target {
	info := t.engine.Info()
	return monitor.Target{
		Daemons: t.cost.daemon.PIDs, Programs: t.r.Programs, Runtimes: []string{filepath.Base(info.Binary), info.Target.Runtime}, Binary: info.Binary,
	}
}

// beginTrace starts the tracer of a traced trial.
func (t *trial) beginTrace() error {
	if t.tracing == nil {
		return nil
	}
	if err := t.engine.Supports(engine.OnHost); err != nil {
		return err
	}
	if t.tracing.start == nil {
		return &engine.UnsupportedError{What: "a trace", Reason: "this run has no tracer"}
	}
	tracer, err := t.tracing.start(t.observed())
	if err != nil {
		return fmt.Errorf("trace the trial: %w", err)
	}
	t.tracing.tracer = tracer
	return nil
}

// endTrace stops the tracer, and keeps the counts.
func (t *trial) endTrace() error {
	g := t.tracing
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tracer == nil {
		return nil
	}
	if err := g.stop(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outside {
		return errOutside
	}
	return nil
}

// stop ends the trace, and keeps the counts.
func (g *tracing) stop() (err error) {
	g.counts, err = g.tracer.Stop()
	g.timeline = g.tracer.Timeline()
	g.tracer = nil
	return errors.Join(g.err, err)
}

// trialTrace implements bench.Trace.
type trialTrace struct{ *trial }

var errNoTrace = errors.New("the trial has no trace: its benchmark does not declare one, or has ended it")

func (t trialTrace) Begin(step string) error {
	g := t.tracing
	if g == nil {
		return errNoTrace
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tracer == nil {
		return errNoTrace
	}
	g.steps = append(g.steps, step)
	return g.tracer.Step(step)
}

func (t trialTrace) Attach() (functions int, took time.Duration, err error) {
	g := t.tracing
	if g == nil {
		return 0, 0, errNoTrace
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	tracer, ok := g.tracer.(FunctionTracer)
	if !ok {
		return 0, 0, errNoTrace
	}
	return tracer.Attach()
}

func (t trialTrace) Counts(components ...monitor.Component) ([]result.TraceCounts, error) {
	g := t.tracing
	if g == nil {
		return nil, errNoTrace
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tracer == nil {
		return nil, errNoTrace
	}
	if err := g.stop(); err != nil {
		return nil, err
	}
	g.counts = slices.DeleteFunc(g.counts, func(c result.TraceCounts) bool {
		return !slices.Contains(g.steps, c.Step) || !slices.Contains(components, monitor.Component(c.Component))
	})
	return g.counts, nil
}

// call makes the counts during a call of the engine belong to a step. The receiver is nil without a tracer.
func (g *tracing) call(step string, call func() error) error {
	if g == nil {
		return call()
	}
	g.enter(step)
	defer g.leave()
	return call()
}

func (g *tracing) enter(step string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls++; g.calls > 1 {
		g.crowd = true
	}
	g.pass(step)
}

func (g *tracing) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 {
		g.crowd = false
		g.pass("")
	}
}

// within makes the counts during a step of a call belong to it. The rest of the call belongs to phase.
func (g *tracing) within(phase, step string, call func() error) error {
	if g == nil || step == "" {
		return call()
	}
	set := func(name string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.pass(name)
	}
	set(phase + "/" + step)
	defer set(phase)
	return call()
}

// pass passes the step of a call to the tracer. A call that reached its limit may still go on after the trace.
func (g *tracing) pass(name string) {
	if g.tracer == nil || len(g.steps) > 0 {
		return
	}
	if g.crowd {
		name = severalCalls
	}
	g.err = errors.Join(g.err, g.tracer.Step(name))
}
