package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

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
}

// Tracing configures the traces of a run.
type Tracing struct {
	// Count is the number of traces of each cell.
	Count int
	Start func(monitor.Target) (Tracer, error)
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
	mu     sync.Mutex
	tracer Tracer // nil before the trial and after it
	calls  int    // under way
	crowd  bool   // more than one call has been under way since the last time without one
	err    error  // of the tracer
	counts []result.TraceCounts
}

// severalCalls is the step of calls that are under way at once: their work is not separable.
const severalCalls = "several calls at once"

// errOutside is the reason why a trial with processes outside the target has no counts.
var errOutside = &engine.UnsupportedError{What: "the trial's processes", Reason: "some are outside of the target, and a trace does not separate them"}

// traces executes the traced trials, after all others. It returns false if ctx ended before the last one.
func (r *run) traces(ctx context.Context) (complete bool, err error) {
	cells := map[result.Cell]*traced{}
	seq := 0
	for i := range r.Tracing.Done {
		t := &r.Tracing.Done[i]
		cells[t.Cell] = cells[t.Cell].with(t)
		seq = max(seq, t.Seq)
	}
	for n := range r.Tracing.Count {
		for _, w := range r.Work {
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
				seq++
				trace, counts := r.trace(ctx, w, target, seq, n)
				if !counts {
					return false, nil
				}
				if err := r.Tracing.Record(trace); err != nil {
					return false, fmt.Errorf("record trace %d (%s on %s): %w", seq, cell.Benchmark, cell.Target, err)
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
	t := &tracing{}
	trial, counts := r.attempt(ctx, w, target, attempt{name: fmt.Sprintf("trace%d", seq), what: "the traced trial", limit: r.TrialLimit, tracing: t})
	trial.Seq, trial.Cell, trial.Block = seq, cell, block
	if counts {
		r.Observer.Ended(trial)
	}
	return result.Trace{
		Seq: seq, Cell: cell, Status: trial.Status, Reason: trial.Reason, Started: trial.Started, Elapsed: trial.Elapsed, Phases: trial.Phases, Counts: t.result(trial.Status),
	}, counts
}

// result returns the counts of a trial with a status.
func (g *tracing) result(status result.Status) []result.TraceCounts {
	if status != result.OK {
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
	tracer, err := t.r.Tracing.Start(t.observed())
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
	var err error
	g.counts, err = g.tracer.Stop()
	g.tracer = nil
	if err = errors.Join(g.err, err); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.outside {
		return errOutside
	}
	return nil
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
	g.step(step)
}

func (g *tracing) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 {
		g.crowd = false
		g.step("")
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
		g.step(name)
	}
	set(phase + "/" + step)
	defer set(phase)
	return call()
}

// step passes a step to the tracer. A call that reached its limit may still go on after the trace.
func (g *tracing) step(name string) {
	if g.tracer == nil {
		return
	}
	if g.crowd {
		name = severalCalls
	}
	g.err = errors.Join(g.err, g.tracer.Step(name))
}
