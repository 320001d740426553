package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// container is a container and its first process. Its mutex is held while output
// is written, and never while the clock is moved.
type container struct {
	engine  *Engine
	spec    engine.Spec
	program program
	index   int // number of containers that the engine created before

	mu      sync.Mutex
	state   engine.State
	process behaviour
	ending  *ending // the scheduled exit of the process
	frozen  *ending // the scheduled exit while the container is paused
	exit    engine.Exit
	changed chan struct{} // closed at each change of the fields above
	deletes int
	gone    bool
	kept    bool             // a lying delete has left it behind
	limits  engine.Resources // of the last update, or of the spec
	silence func()           // ends the lines of the process; nil for most
	paused  atomic.Bool
}

// ending is the exit of a process in the future.
type ending struct {
	at     time.Time
	left   time.Duration // instead of at while the container is paused, when the time does not pass
	exit   engine.Exit
	output bool // the program completes and writes its result
	cancel func()
}

func (c *container) ID() string { return c.spec.ID }

// explain adds the name of a call to its error.
func (c *container) explain(call string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("%s container %q: %w", call, c.spec.ID, *err)
	}
}

func (c *container) Start(ctx context.Context) (err error) {
	defer c.explain("start", &err)
	if state := c.current(); state != engine.Created {
		return fmt.Errorf("it is %s, not created", state)
	}
	e := c.engine
	call, err := e.enter(ctx, opStart, c.index)
	if err != nil {
		return err
	}
	ready := call.took / 2
	if e.script.ready >= 0 {
		ready = time.Duration(float64(e.script.ready) * e.noise("ready", c.index))
	}
	if call.fault != nil || call.lie {
		if err := e.clock.spend(ctx, call.took); err != nil {
			return err
		}
		return call.fault
	}
	if err := e.spendInStages(ctx, ready, engine.StageAccepted, engine.StageScheduled, engine.StageSandboxed, engine.StagePrepared); err != nil {
		return err
	}
	if err := c.begin(hits(e.script.die, opStart, call.n)); err != nil {
		return err
	}
	engine.Mark(ctx, engine.StageFirstLine)
	if err := e.clock.spend(ctx, call.took-ready); err != nil {
		return err
	}
	engine.Mark(ctx, engine.StageRunning)
	engine.Mark(ctx, engine.StageReady)
	return nil
}

// spendInStages spends the time of a call in equal parts, and reports a stage between two of them.
func (e *Engine) spendInStages(ctx context.Context, d time.Duration, stages ...engine.Stage) error {
	part := d / time.Duration(len(stages)+1)
	for _, s := range stages {
		if err := e.clock.spend(ctx, part); err != nil {
			return err
		}
		engine.Mark(ctx, s)
	}
	return e.clock.spend(ctx, d-part*time.Duration(len(stages)))
}

// begin lets the process run its first instruction.
func (c *container) begin(dies bool) error {
	number := c.engine.nextProcess()
	process := c.program.begin(c.engine, c.index, number)
	exit := c.engine.exitLatency(c.index)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != engine.Created {
		process.server.close()
		return fmt.Errorf("it is %s, not created", c.state)
	}
	c.process = process
	c.become(engine.Running)
	if dies {
		c.stop(engine.Exit{Signal: syscall.SIGKILL})
		return nil
	}
	write(c.spec.Process.Stdout, process.first)
	write(c.spec.Process.Stderr, process.Log)
	switch {
	case process.Lines != nil:
		c.silence = c.repeat(process, c.spec.Process.Stdout)
	case !process.endless:
		c.schedule(process.Took+exit, process.Exit, true)
	}
	return nil
}

// repeat lets a program with Lines write them until the returned function is called. A paused container is silent.
func (c *container) repeat(process behaviour, sink io.Writer) (silence func()) {
	load := &c.engine.host.busy
	load.Add(1)
	n := 0
	stop := c.engine.clock.repeat(func() time.Duration { return process.Every * time.Duration(load.Load()) }, func() {
		if !c.paused.Load() {
			n++
			write(sink, process.Lines(n)+"\n")
		}
	})
	return func() {
		stop()
		load.Add(-1)
	}
}

func (c *container) Kill(ctx context.Context, signal syscall.Signal) (err error) {
	defer c.explain("kill", &err)
	if err := c.engine.do(ctx, opKill, c.index); err != nil {
		return err
	}
	latency := c.engine.exitLatency(c.index)
	c.mu.Lock()
	defer c.mu.Unlock()
	exit, ends := c.process.killed(signal)
	switch {
	case !ends || c.state == engine.Stopped:
	case c.ending != nil && !c.ending.at.After(c.engine.clock.Now().Add(latency)):
		// The process exits by itself before the signal takes effect.
	case c.state == engine.Paused && signal != syscall.SIGKILL:
		c.frozen = &ending{left: latency, exit: exit}
	default:
		c.schedule(latency, exit, false)
	}
	return nil
}

// Wait moves the clock to the scheduled exit of the process. Without one it waits until another call causes the exit.
func (c *container) Wait(ctx context.Context) (_ engine.Exit, err error) {
	defer c.explain("wait for", &err)
	if err := c.engine.do(ctx, opWait, c.index); err != nil {
		return engine.Exit{}, err
	}
	for {
		c.mu.Lock()
		state, exit, exitEvent, change := c.state, c.exit, c.ending, c.changed
		c.mu.Unlock()
		switch {
		case state == engine.Stopped:
			return exit, nil
		case exitEvent != nil:
			if err := c.engine.clock.reach(ctx, exitEvent.at); err != nil {
				return engine.Exit{}, err
			}
		default:
			select {
			case <-change:
			case <-ctx.Done():
				return engine.Exit{}, context.Cause(ctx)
			}
		}
	}
}

func (c *container) State(ctx context.Context) (_ engine.State, err error) {
	defer c.explain("query the state of", &err)
	if err := c.engine.do(ctx, opState, c.index); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return "", errors.New("it has been deleted")
	}
	return c.state, nil
}

func (c *container) Delete(ctx context.Context) (err error) {
	defer c.explain("delete", &err)
	c.mu.Lock()
	isGone := c.gone || c.kept
	c.mu.Unlock()
	if isGone {
		return nil
	}
	e := c.engine
	call, err := e.enter(ctx, opDelete, c.index)
	if err != nil {
		return err
	}
	if err := e.spendInStages(ctx, call.took, engine.StageStopping, engine.StageLastLine, engine.StageTerminated); err != nil {
		return err
	}
	if call.fault != nil {
		return call.fault
	}
	engine.Mark(ctx, engine.StageDeleted)
	c.mu.Lock()
	c.deletes++
	if c.deletes == 1 && hits(e.script.leak, opDelete, call.n) {
		c.mu.Unlock()
		return fmt.Errorf("scripted fault: call %d of delete removes nothing", call.n)
	}
	if call.lie {
		c.kept = true
		c.mu.Unlock()
		return nil
	}
	first := !c.gone
	c.gone = true
	if c.state != engine.Stopped {
		write(c.spec.Process.Stdout, c.process.last)
		c.stop(engine.Exit{Signal: syscall.SIGKILL})
	}
	c.mu.Unlock()
	if first {
		e.host.remove(c)
		e.charge(c.index)
	}
	return nil
}

// Traces finds a container that a lying call has left.
func (c *container) Traces(context.Context) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept {
		return []string{fmt.Sprintf("the container, which is %s", c.state)}, nil
	}
	return nil, nil
}

func (c *container) current() engine.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// become changes the state. The caller holds the mutex.
func (c *container) become(s engine.State) {
	c.state = s
	c.paused.Store(s == engine.Paused)
	close(c.changed)
	c.changed = make(chan struct{})
}

// schedule sets or replaces the exit of the process. The caller holds the mutex.
func (c *container) schedule(delay time.Duration, exit engine.Exit, output bool) {
	if c.ending != nil {
		c.ending.cancel()
	}
	end := &ending{exit: exit, output: output}
	end.at, end.cancel = c.engine.clock.after(delay, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ending != end {
			return
		}
		if end.output {
			write(c.spec.Process.Stdout, c.process.Stdout)
			write(c.spec.Process.Stderr, c.process.Stderr)
		}
		c.stop(end.exit)
	})
	c.ending = end
	c.become(c.state)
}

// stop ends the process now. The caller holds the mutex.
func (c *container) stop(exit engine.Exit) {
	if c.ending != nil {
		c.ending.cancel()
		c.ending = nil
	}
	c.frozen = nil
	if c.silence != nil {
		c.silence()
	}
	c.process.server.close()
	c.spec.Process.CloseOutput()
	c.exit = exit
	c.become(engine.Stopped)
}

// exitLatency is the time that the process of a container takes to exit.
func (e *Engine) exitLatency(index int) time.Duration {
	return time.Duration(float64(e.script.exit) * e.noise("exit", index))
}

// write writes text to a process's output. It ignores errors, like a process that writes to a pipe.
func write(w io.Writer, text string) {
	if w != nil && text != "" {
		_, _ = w.Write([]byte(text))
	}
}

// Exec runs a further process until it exits or the container stops.
func (c *container) Exec(ctx context.Context, p engine.Process) (_ engine.Exit, err error) {
	defer c.explain("execute a process in", &err)
	if err := c.engine.Supports(engine.CanExec); err != nil {
		return engine.Exit{}, err
	}
	if state := c.current(); state != engine.Running {
		return engine.Exit{}, fmt.Errorf("it is %s, not running", state)
	}
	if lie, err := c.engine.pretend(ctx, opExec, c.index); err != nil || lie {
		p.CloseOutput()
		return engine.Exit{}, err
	}
	program, err := c.engine.host.loadProgram(p.Args, c.spec)
	if err != nil {
		return engine.Exit{}, err
	}
	defer p.CloseOutput()
	process := program.begin(c.engine, c.index, c.engine.nextProcess())
	defer process.server.close()
	write(p.Stdout, process.first)
	if process.Lines != nil {
		defer c.repeat(process, p.Stdout)()
		process.endless = true
	}
	end := c.engine.clock.Now().Add(process.Took)
	for {
		c.mu.Lock()
		state, exitEvent, change := c.state, c.ending, c.changed
		c.mu.Unlock()
		switch {
		case state == engine.Stopped:
			return engine.Exit{Signal: syscall.SIGKILL}, nil
		case process.endless || state == engine.Paused:
			select {
			case <-change:
			case <-ctx.Done():
				return engine.Exit{}, context.Cause(ctx)
			}
		case exitEvent != nil && exitEvent.at.Before(end):
			if err := c.engine.clock.reach(ctx, exitEvent.at); err != nil {
				return engine.Exit{}, err
			}
		default:
			if err := c.engine.clock.reach(ctx, end); err != nil {
				return engine.Exit{}, err
			}
			write(p.Stdout, process.Stdout)
			write(p.Stderr, process.Stderr)
			return process.Exit, nil
		}
	}
}

// Pause freezes the container and the time left to its process.
func (c *container) Pause(ctx context.Context) error {
	return c.freeze(ctx, opPause, engine.Running, engine.Paused)
}

// Resume thaws the container.
func (c *container) Resume(ctx context.Context) error {
	return c.freeze(ctx, opResume, engine.Paused, engine.Running)
}

func (c *container) freeze(ctx context.Context, o op, origin, goal engine.State) (err error) {
	defer c.explain(string(o), &err)
	if err := c.engine.Supports(engine.CanPause); err != nil {
		return err
	}
	if state := c.current(); state != origin {
		return fmt.Errorf("it is %s, not %s", state, origin)
	}
	if lie, err := c.engine.pretend(ctx, o, c.index); err != nil || lie {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != origin {
		return fmt.Errorf("it is %s, not %s", c.state, origin)
	}
	c.become(goal)
	// The exit of a frozen process is not on the clock.
	switch end := c.ending; {
	case goal == engine.Paused && end != nil:
		end.cancel()
		end.left = end.at.Sub(c.engine.clock.Now())
		c.ending, c.frozen = nil, end
	case goal == engine.Running && c.frozen != nil:
		end, c.frozen = c.frozen, nil
		c.schedule(end.left, end.exit, end.output)
	}
	return nil
}

// Update accepts all limits: a fake process uses no resources. A zero changes no limit.
func (c *container) Update(ctx context.Context, r engine.Resources) (err error) {
	defer c.explain("update", &err)
	if err := cmp.Or(c.engine.Supports(engine.CanUpdate), checkResources(r)); err != nil {
		return err
	}
	if state := c.current(); state == engine.Stopped {
		return fmt.Errorf("it is %s", state)
	}
	if lie, err := c.engine.pretend(ctx, opUpdate, c.index); err != nil || lie {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.limits
	l.CPU, l.Memory, l.PIDs, l.CPUSet = cmp.Or(r.CPU, l.CPU), cmp.Or(r.Memory, l.Memory), cmp.Or(r.PIDs, l.PIDs), cmp.Or(r.CPUSet, l.CPUSet)
	return nil
}

// Limits implements engine.Limited.
func (c *container) Limits(context.Context) (engine.Resources, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits, nil
}

// Stats returns the values of the target's options for a running container.
func (c *container) Stats(ctx context.Context) (_ engine.Stats, err error) {
	defer c.explain("query the resource use of", &err)
	if err := c.engine.Supports(engine.CanStats); err != nil {
		return engine.Stats{}, err
	}
	if err := c.engine.do(ctx, opStats, c.index); err != nil {
		return engine.Stats{}, err
	}
	if state := c.current(); state != engine.Running {
		return engine.Stats{}, fmt.Errorf("it is %s, not running", state)
	}
	return engine.Stats{CPU: c.engine.script.cpu, Memory: c.engine.script.memory}, nil
}
