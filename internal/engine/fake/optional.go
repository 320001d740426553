package fake

import (
	"cmp"
	"context"
	"fmt"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Exec runs a further process until it exits or the container stops.
func (c *container) Exec(ctx context.Context, p engine.Process) (_ engine.Exit, err error) {
	defer c.explain("execute a process in", &err)
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
	end := c.engine.clock.Now().Add(process.Took)
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

func (c *container) freeze(ctx context.Context, o op, from, to engine.State) (err error) {
	defer c.explain(string(o), &err)
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
	// The exit of a frozen process is not on the clock.
	switch end := c.ending; {
	case to == engine.Paused && end != nil:
		end.cancel()
		end.left = end.at.Sub(c.engine.clock.Now())
		c.ending, c.frozen = nil, end
	case to == engine.Running && c.frozen != nil:
		end, c.frozen = c.frozen, nil
		c.schedule(end.left, end.exit, end.output)
	}
	return nil
}

// Update accepts all limits: a fake process uses no resources.
func (c *container) Update(ctx context.Context, r engine.Resources) (err error) {
	defer c.explain("update", &err)
	if err := cmp.Or(c.engine.Supports(engine.CanUpdate), checkResources(r)); err != nil {
		return err
	}
	if state := c.current(); state == engine.Stopped {
		return fmt.Errorf("it is %s", state)
	}
	return c.engine.do(ctx, opUpdate, c.index)
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
