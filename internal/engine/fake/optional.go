package fake

import (
	"cmp"
	"context"
	"fmt"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Exec runs a further process until it exits or the container stops.
func (c *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	exit, err := c.exec(ctx, p)
	if err != nil {
		return engine.Exit{}, fmt.Errorf("execute a process in container %q: %w", c.spec.ID, err)
	}
	return exit, nil
}

func (c *container) exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	if err := c.engine.Supports(engine.CanExec); err != nil {
		return engine.Exit{}, err
	}
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
	defer p.CloseOutput()
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
func (c *container) Pause(ctx context.Context) error {
	if err := c.freeze(ctx, opPause, engine.Running, engine.Paused); err != nil {
		return fmt.Errorf("pause container %q: %w", c.spec.ID, err)
	}
	return nil
}

// Resume thaws the container.
func (c *container) Resume(ctx context.Context) error {
	if err := c.freeze(ctx, opResume, engine.Paused, engine.Running); err != nil {
		return fmt.Errorf("resume container %q: %w", c.spec.ID, err)
	}
	return nil
}

func (c *container) freeze(ctx context.Context, o op, from, to engine.State) error {
	if err := c.engine.Supports(engine.CanPause); err != nil {
		return err
	}
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

// postpone takes the exit of a frozen process off the clock, or puts it back. The caller holds the mutex.
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

// Update accepts all limits: a fake process uses no resources.
func (c *container) Update(ctx context.Context, r engine.Resources) error {
	if err := c.update(ctx, r); err != nil {
		return fmt.Errorf("update container %q: %w", c.spec.ID, err)
	}
	return nil
}

func (c *container) update(ctx context.Context, r engine.Resources) error {
	if err := cmp.Or(c.engine.Supports(engine.CanUpdate), checkResources(r)); err != nil {
		return err
	}
	if state := c.current(); state == engine.Stopped {
		return fmt.Errorf("it is %s", state)
	}
	return c.engine.do(ctx, opUpdate, c.index)
}

// Stats returns the values of the target's options for a running container.
func (c *container) Stats(ctx context.Context) (engine.Stats, error) {
	err := c.engine.Supports(engine.CanStats)
	if err == nil {
		err = c.engine.do(ctx, opStats, c.index)
	}
	if state := c.current(); err == nil && state != engine.Running {
		err = fmt.Errorf("it is %s, not running", state)
	}
	if err != nil {
		return engine.Stats{}, fmt.Errorf("query the resource use of container %q: %w", c.spec.ID, err)
	}
	return engine.Stats{CPU: c.engine.script.cpu, Memory: c.engine.script.memory}, nil
}
