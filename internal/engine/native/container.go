package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// container is a process in a cgroup and root file system of its own.
type container struct {
	e     *Engine
	spec  engine.Spec
	group *cgroup.Group // nil without cgroups
	end   *network.End  // nil unless bridged
	netns string        // path of the network namespace; empty for the host's
	layer string        // the writable directory on the run's disk; empty without one

	init  *os.Process      // nil until created
	first *process.Process // the same, for the launcher
	gate  *os.File         // one byte lets the program run
	ready *os.File         // ends when the program runs
	ended chan struct{}
	exit  process.Exit

	output process.Output

	mu      sync.Mutex
	state   engine.State
	deleted bool
}

func (c *container) ID() string { return c.spec.ID }

// writableDir is the path of the writable directory for the process.
const writableDir = "/data"

// prepare makes the process's cgroup, with the limits, its directory on disk, and the network.
func (c *container) prepare() (err error) {
	s := c.e.Session
	if s.Cgroups != nil {
		if c.group, err = s.Cgroups.Create(c.e.CgroupParent() + "/" + c.spec.ID); err != nil {
			return err
		}
	}
	if err := errors.Join(c.limit(c.spec.Resources), c.limitUnprivileged()); err != nil {
		return err
	}
	switch {
	case c.spec.Join != "":
		c.netns = c.spec.Join
	case c.spec.Network == engine.Bridged:
		n, err := c.e.network()
		if err != nil {
			return err
		}
		c.end = n.Connect()
		c.netns = c.end.Path()
	}
	if !c.spec.Writable {
		return nil
	}
	parent := filepath.Join(s.Data, target.Native)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	layer := filepath.Join(parent, c.spec.ID)
	if err := os.Mkdir(layer, 0o755); err != nil {
		return err
	}
	c.layer = layer
	return nil
}

// limit sets the limits of the cgroup.
func (c *container) limit(r engine.Resources) error {
	if r.CPU == 0 && r.Memory == 0 && r.PIDs == 0 {
		return nil
	}
	if c.group == nil {
		return &engine.UnsupportedError{What: "limits", Reason: noLimits}
	}
	err := c.group.Limit(cgroup.Limits{CPU: r.CPU, Memory: r.Memory, PIDs: r.PIDs})
	if errors.Is(err, errors.ErrUnsupported) {
		return &engine.UnsupportedError{What: "limits", Reason: err.Error()}
	}
	return err
}

// Update changes the limits while the process runs.
func (c *container) Update(_ context.Context, r engine.Resources) error {
	if err := c.limit(r); err != nil {
		return fmt.Errorf("update %q: %w", c.spec.ID, err)
	}
	return nil
}

// Limits implements engine.Limited.
func (c *container) Limits(context.Context) (engine.Resources, error) {
	if c.group == nil {
		return engine.Resources{}, engine.ErrHiddenLimits
	}
	return engine.LimitsOf(c.e.Session.Cgroups, c.init.Pid)
}

// Address implements engine.Addressed.
func (c *container) Address(context.Context) (netip.Addr, error) {
	if c.end == nil {
		return netip.Addr{}, fmt.Errorf("address of %q: it is not bridged", c.spec.ID)
	}
	return c.end.Address(), nil
}

func (c *container) create(ctx context.Context) error {
	readyR, readyW, err := os.Pipe()
	if err != nil {
		return err
	}
	gateR, gateW, err := os.Pipe()
	if err != nil {
		_, _ = readyR.Close(), readyW.Close()
		return err
	}
	c.ready, c.gate = readyR, gateW
	if err := c.output.Open(c.spec.Process.Stdout, c.spec.Process.Stderr); err != nil {
		_, _, _, _ = readyR.Close(), readyW.Close(), gateR.Close(), gateW.Close()
		return err
	}
	// The process outlives this call: its context is not the command's.
	cmd := c.enter(context.WithoutCancel(ctx), c.spec.Process.Args, c.spec.Process.Env, true)
	c.output.Set(cmd)
	cmd.ExtraFiles = []*os.File{readyW, gateR}
	cmd.SysProcAttr = c.e.namespaces()
	first, err := c.e.Session.Launcher.Spawn(cmd)
	_, _, _ = readyW.Close(), gateR.Close(), c.output.Close()
	if err != nil {
		close(c.ended)
		return c.e.refused(err)
	}
	c.init, c.first = cmd.Process, first
	c.state = engine.Created
	go func() {
		c.exit = first.Wait()
		close(c.ended)
	}()
	stop := context.AfterFunc(ctx, func() { _ = c.init.Kill() })
	_, err = io.ReadFull(c.ready, make([]byte, 1))
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return c.failed(ctx)
	}
	return nil
}

// failed returns the reason why the process exited before its program ran.
func (c *container) failed(ctx context.Context) error {
	<-c.ended
	if err := c.output.Wait(ctx); err != nil {
		return err
	}
	return errors.New(cmp.Or(complaint(c.output.Tail()), exitOf(c.exit.Status).String()))
}

// Start lets the program run. It returns when the program runs or cannot be executed.
func (c *container) Start(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("start %q: %w", c.spec.ID, err)
	}
	return nil
}

func (c *container) start(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := c.gate.Write([]byte{1}); err != nil {
		return err
	}
	// The pipe is close-on-exec in the process and ends when the program runs. A byte in it means that the program
	// could not be executed.
	stop := context.AfterFunc(ctx, func() { _ = c.init.Kill() })
	_, err := c.ready.Read(make([]byte, 1))
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !errors.Is(err, io.EOF) {
		return c.failed(ctx)
	}
	c.mu.Lock()
	c.state = engine.Running
	c.mu.Unlock()
	return nil
}

func (c *container) Kill(_ context.Context, signal syscall.Signal) error {
	if engine.Ended(c.ended) {
		return nil
	}
	if err := c.init.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %q: %w", c.spec.ID, err)
	}
	return nil
}

func (c *container) Wait(ctx context.Context) (engine.Exit, error) {
	if err := engine.Await(ctx, c.ended); err != nil {
		return engine.Exit{}, fmt.Errorf("wait for %q: %w", c.spec.ID, err)
	}
	return exitOf(c.exit.Status), nil
}

func exitOf(s syscall.WaitStatus) engine.Exit {
	if s.Signaled() {
		return engine.Exit{Signal: s.Signal()}
	}
	return engine.Exit{Code: s.ExitStatus()}
}

func (c *container) State(context.Context) (engine.State, error) {
	if engine.Ended(c.ended) {
		return engine.Stopped, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, nil
}

func (c *container) Delete(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deleted {
		return nil
	}
	if c.init != nil {
		if err := c.Kill(ctx, syscall.SIGKILL); err != nil {
			return err
		}
		if _, err := c.Wait(ctx); err != nil {
			return err
		}
	}
	if c.group != nil {
		if err := c.group.Destroy(ctx); err != nil {
			return fmt.Errorf("delete %q: %w", c.spec.ID, err)
		}
	}
	if err := c.output.Wait(ctx); err != nil {
		return fmt.Errorf("delete %q: %w", c.spec.ID, err)
	}
	if c.layer != "" {
		if err := os.RemoveAll(c.layer); err != nil {
			return fmt.Errorf("delete %q: %w", c.spec.ID, err)
		}
	}
	if c.end != nil {
		c.end.Close()
	}
	_, _ = c.gate.Close(), c.ready.Close()
	c.deleted = true
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	delete(c.e.containers, c.spec.ID)
	return nil
}

// Exec runs a program beside the first one, in the same cgroup and root file system. As root it is in the PID and IPC namespaces of the first
// one, as in a container: it sees its processes, and its orphans end with the first one. Another user may not enter a PID namespace
// without one more process, so there the program has namespaces of its own.
func (c *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	fail := func(err error) (engine.Exit, error) {
		return engine.Exit{}, fmt.Errorf("execute in %q: %w", c.spec.ID, err)
	}
	errExited := errors.New("its process has exited")
	if engine.Ended(c.ended) {
		return fail(errExited)
	}
	var out process.Output
	if err := out.Open(p.Stdout, p.Stderr); err != nil {
		return fail(err)
	}
	cmd := c.enter(ctx, p.Args, p.Env, false)
	out.Set(cmd)
	var done <-chan process.Exit
	var err error
	if c.e.info.Rootless {
		cmd.SysProcAttr = c.e.namespaces()
		done, err = c.e.Session.Launcher.Start(cmd)
	} else {
		done, err = c.e.Session.Launcher.StartBeside(ctx, cmd, c.first)
	}
	_ = out.Close()
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return fail(errExited)
	case err != nil:
		return fail(c.e.refused(err))
	}
	exit := exitOf((<-done).Status)
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	if err := out.Wait(ctx); err != nil {
		return fail(err)
	}
	if cause := complaint(out.Tail()); !exit.OK() && cause != "" {
		return fail(errors.New(cause))
	}
	return exit, nil
}
