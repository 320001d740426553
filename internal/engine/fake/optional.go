package fake

import (
	"context"
	"fmt"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The optional interfaces are types of their own, so that a container whose
// target lacks a capability lacks its methods.
type (
	execer  struct{ c *container }
	pauser  struct{ c *container }
	updater struct{ c *container }
)

// withCapabilities gives c with the interfaces of its target's capabilities.
func (c *container) withCapabilities() engine.Container {
	has := func(capability engine.Capability) bool { return c.engine.Supports(capability) == nil }
	switch [3]bool{has(engine.CanExec), has(engine.CanPause), has(engine.CanUpdate)} {
	case [3]bool{true, true, true}:
		return struct {
			*container
			execer
			pauser
			updater
		}{c, execer{c}, pauser{c}, updater{c}}
	case [3]bool{true, true, false}:
		return struct {
			*container
			execer
			pauser
		}{c, execer{c}, pauser{c}}
	case [3]bool{true, false, true}:
		return struct {
			*container
			execer
			updater
		}{c, execer{c}, updater{c}}
	case [3]bool{true, false, false}:
		return struct {
			*container
			execer
		}{c, execer{c}}
	case [3]bool{false, true, true}:
		return struct {
			*container
			pauser
			updater
		}{c, pauser{c}, updater{c}}
	case [3]bool{false, true, false}:
		return struct {
			*container
			pauser
		}{c, pauser{c}}
	case [3]bool{false, false, true}:
		return struct {
			*container
			updater
		}{c, updater{c}}
	}
	return c
}

// Exec runs a further process to its end, or to the container's.
func (x execer) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	exit, err := x.exec(ctx, p)
	if err != nil {
		return engine.Exit{}, fmt.Errorf("execute a process in container %q: %w", x.c.spec.ID, err)
	}
	return exit, nil
}

func (x execer) exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	c := x.c
	if state := c.current(); state != engine.Running {
		return engine.Exit{}, fmt.Errorf("it is %s, not running", state)
	}
	if err := c.engine.do(ctx, opExec, c.index); err != nil {
		return engine.Exit{}, err
	}
	program, err := c.engine.host.loadProgram(p.Args, c.spec)
	if err != nil {
		return engine.Exit{}, err
	}
	defer closeOutput(p)
	process := program.begin(c.engine, c.index, c.engine.nextProcess())
	defer process.server.close()
	write(p.Stdout, process.first)
	end := c.engine.clock.Now().Add(process.length)
	for {
		c.mu.Lock()
		state, ending, changed := c.state, c.ending, c.changed
		c.mu.Unlock()
		switch {
		case state == engine.Stopped:
			return engine.Exit{Signal: syscall.SIGKILL}, nil
		case process.endless || state == engine.Paused:
			select {
			case <-changed:
			case <-ctx.Done():
				return engine.Exit{}, context.Cause(ctx)
			}
		case ending != nil && ending.at.Before(end):
			if err := c.engine.clock.reach(ctx, ending.at); err != nil {
				return engine.Exit{}, err
			}
		default:
			if err := c.engine.clock.reach(ctx, end); err != nil {
				return engine.Exit{}, err
			}
			write(p.Stdout, process.result)
			write(p.Stderr, process.complaint)
			return process.exit, nil
		}
	}
}

// Pause freezes the container and the time left to its process.
func (x pauser) Pause(ctx context.Context) error {
	if err := x.freeze(ctx, opPause, engine.Running, engine.Paused); err != nil {
		return fmt.Errorf("pause container %q: %w", x.c.spec.ID, err)
	}
	return nil
}

// Resume thaws it.
func (x pauser) Resume(ctx context.Context) error {
	if err := x.freeze(ctx, opResume, engine.Paused, engine.Running); err != nil {
		return fmt.Errorf("resume container %q: %w", x.c.spec.ID, err)
	}
	return nil
}

func (x pauser) freeze(ctx context.Context, o op, from, to engine.State) error {
	c := x.c
	if state := c.current(); state != from {
		return fmt.Errorf("it is %s, not %s", state, from)
	}
	if err := c.engine.do(ctx, o, c.index); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != from {
		return fmt.Errorf("it is %s, not %s", c.state, from)
	}
	c.become(to)
	c.postpone(to == engine.Paused)
	return nil
}

// postpone takes the end of a frozen process off the clock, or puts it back. It
// needs the mutex.
func (c *container) postpone(pausing bool) {
	switch {
	case pausing && c.ending != nil:
		c.ending.cancel()
		c.frozen = &frozen{after: c.ending.at.Sub(c.engine.clock.Now()), exit: c.ending.exit, output: c.ending.output}
		c.ending = nil
	case !pausing && c.frozen != nil:
		end := c.frozen
		c.frozen = nil
		c.schedule(end.after, end.exit, end.output)
	}
}

// Update accepts all limits; a fake process uses nothing that could be limited.
func (x updater) Update(ctx context.Context, r engine.Resources) error {
	if err := x.update(ctx, r); err != nil {
		return fmt.Errorf("update container %q: %w", x.c.spec.ID, err)
	}
	return nil
}

func (x updater) update(ctx context.Context, r engine.Resources) error {
	if err := checkResources(r); err != nil {
		return err
	}
	if state := x.c.current(); state == engine.Stopped {
		return fmt.Errorf("it is %s", state)
	}
	return x.c.engine.do(ctx, opUpdate, x.c.index)
}

// Stats tells what the target's options say, of a container that is there. It is a method of every fake
// container; whether it is promised is for Supports to say.
func (c *container) Stats(ctx context.Context) (engine.Stats, error) {
	err := c.engine.do(ctx, opStats, c.index)
	if state := c.current(); err == nil && state != engine.Running {
		err = fmt.Errorf("it is %s, not running", state)
	}
	if err != nil {
		return engine.Stats{}, fmt.Errorf("ask what container %q uses: %w", c.spec.ID, err)
	}
	return engine.Stats{CPU: c.engine.script.cpu, Memory: c.engine.script.memory}, nil
}
