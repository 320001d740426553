package isolation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// scene starts the parties of a benchmark.
type scene struct {
	victim    func(ctx context.Context, t bench.Trial, p *party) error
	aggressor func(ctx context.Context, t bench.Trial, p *party) error
}

// run measures the passes of a trial and records the result.
func (s scene) run(ctx context.Context, t bench.Trial) error {
	recordParties(t)
	attack, err := s.pass(ctx, t, nil)
	if err != nil {
		return err
	}
	control, err := s.pass(ctx, t, &attack)
	if err != nil {
		return err
	}
	return record(t, attack, control)
}

// window is a part of a pass.
type window struct{ start, end time.Duration }

func (w window) seconds() float64 { return (w.end - w.start).Seconds() }

// pass is the record of one pass.
type pass struct {
	before, during, after window
	ramp                  time.Duration // from the end of before to the start of during
	victim                []step
	victimCPU             []step // work is CPU time in seconds; nil if it is unknown
	aggressors            [][]step
	aggressorCPU          []step
}

// settle is the part of the phase before that precedes it, and is not measured.
const settle = 5

// pass runs the victim through the phases. Without model an aggressor runs in the phase during. The control follows
// model: it has the same lengths.
func (s scene) pass(parent context.Context, t bench.Trial, model *pass) (_ pass, err error) {
	ctx, fail := context.WithCancelCause(parent)
	gate := newGate()
	victim := newParty("victim", gate, fail)
	defer func() {
		fail(nil)
		victim.leave()
	}()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil && parent.Err() == nil {
			err = cause // the other errors follow from it
		}
	}()
	if err := s.victim(ctx, t, victim); err != nil {
		return pass{}, err
	}
	if err := victim.started(ctx, t); err != nil {
		return pass{}, err
	}
	var out pass
	w := &watcher{t: t}
	victimCPU, err := w.follow(nil)
	if err != nil {
		return pass{}, err
	}
	lead := t.Duration(beforeParam)
	if _, err = w.sleep(ctx, lead/settle); err != nil {
		return pass{}, err
	}
	if out.before, err = w.sleep(ctx, lead); err != nil {
		return pass{}, err
	}
	var aggressors []*party
	if model == nil {
		aggressors, err = s.attack(ctx, t, gate, fail)
	} else {
		_, err = w.sleep(ctx, model.ramp)
	}
	if err != nil {
		return pass{}, err
	}
	var aggressorCPU *cpuTime
	if model == nil && t.Param(aggressorParam) == sameTarget {
		if aggressorCPU, err = w.follow(victimCPU); err != nil {
			return pass{}, err
		}
	}
	if out.during, err = w.sleep(ctx, t.Duration(duringParam)); err != nil {
		return pass{}, err
	}
	out.ramp = out.during.start - out.before.end
	if aggressorCPU != nil {
		out.aggressorCPU = aggressorCPU.steps
		w.forget(aggressorCPU)
	}
	for _, a := range aggressors {
		steps := a.done()
		if !slices.ContainsFunc(steps, func(s step) bool { return s.at > out.during.start && s.at <= out.during.end }) {
			return pass{}, fmt.Errorf("the %s made no progress within %v: there was no load to be isolated from; set a longer phase, or give it more CPU time",
				a.name, t.Duration(duringParam))
		}
		out.aggressors = append(out.aggressors, steps)
		if err := a.end(ctx, t); err != nil {
			return pass{}, err
		}
	}
	if out.after, err = w.sleep(ctx, t.Duration(afterParam)); err != nil {
		return pass{}, err
	}
	out.victim, out.victimCPU = victim.done(), victimCPU.done()
	return out, victim.end(ctx, t)
}

// attack starts the aggressors and returns when each has made progress.
func (s scene) attack(ctx context.Context, t bench.Trial, gate gate, fail context.CancelCauseFunc) ([]*party, error) {
	var parties []*party
	for range t.Int(aggressorsParam) {
		p := newParty("aggressor", gate, fail)
		if err := s.aggressor(ctx, t, p); err != nil {
			return nil, err
		}
		parties = append(parties, p)
	}
	for _, p := range parties {
		if err := p.started(ctx, t); err != nil {
			return nil, err
		}
	}
	return parties, nil
}

// asAggressor launches the program of an aggressor in the place that the parameter selects.
func asAggressor(t bench.Trial) launcher {
	if t.Param(aggressorParam) == nativeHost {
		return bench.FollowOutside
	}
	return bench.Follow
}

// cpuTime follows the CPU time of some processes.
type cpuTime struct {
	processes []int
	last      time.Duration
	steps     []step
	lost      bool // a process has exited, so the time is unknown
}

func (c *cpuTime) done() []step {
	if c == nil || c.lost {
		return nil
	}
	return c.steps
}

// watcher waits, and follows the CPU time of parties meanwhile.
type watcher struct {
	t        bench.Trial
	followed []*cpuTime
}

// tick is the interval of the readings of CPU time. A reading takes some 10 µs for each process.
const tick = 50 * time.Millisecond

// follow follows the processes of the target that live now, except those in exclusions. It returns nil if their time is unknown here.
func (w *watcher) follow(exclusions *cpuTime) (*cpuTime, error) {
	processes, err := w.t.Cost.Processes()
	if err != nil && !engine.Unsupported(err) {
		return nil, err
	}
	if len(processes) == 0 {
		return nil, nil
	}
	c := &cpuTime{processes: slices.Sorted(maps.Keys(processes))}
	if exclusions != nil {
		c.processes = slices.DeleteFunc(c.processes, func(pid int) bool { return slices.Contains(exclusions.processes, pid) })
	}
	w.followed = append(w.followed, c)
	return c, nil
}

func (w *watcher) forget(c *cpuTime) {
	w.followed = slices.DeleteFunc(w.followed, func(f *cpuTime) bool { return f == c })
}

// sleep waits for a time and returns its window.
func (w *watcher) sleep(ctx context.Context, d time.Duration) (window, error) {
	start, err := w.t.Sleep(ctx, 0)
	if err != nil {
		return window{}, err
	}
	w.read(start)
	out := window{start: start}
	for end := start + d; start < end; w.read(start) {
		if start, err = w.t.Sleep(ctx, min(tick, end-start)); err != nil {
			return window{}, err
		}
	}
	out.end = start
	return out, nil
}

// read reads the CPU times.
func (w *watcher) read(moment time.Duration) {
	for _, c := range w.followed {
		if c.lost {
			continue
		}
		total, err := w.t.Cost.Spent(c.processes)
		if err != nil {
			c.lost = true
			continue
		}
		if c.last == 0 || total < c.last {
			c.steps = append(c.steps, step{at: moment})
		} else {
			c.steps = append(c.steps, step{at: moment, work: (total - c.last).Seconds()})
		}
		c.last = total
	}
}
