// Package locality finds out how much of this machine a daemon of the user's shares with this program.
//
// A socket shows nothing about the place of the daemon: another user or PID namespace (userns-remap, a container with the socket), another
// view of the file system (Snap, PrivateTmp), or another kernel (a virtual machine, an SSH tunnel). Benchmarks that need the lacking part
// would fail one by one, or take the cost of another process or cgroup. So the opening of a target runs a few containers, and each
// lacking part becomes a missing capability with its reason and the remedy.
//
// The checks trust effects and no names. A file that a container writes into a directory of this run must appear here, and the kernel must
// report it as an event: a file system that a virtual machine shares has the file and no event. The process ID that the daemon reports must
// lead to a process with the container's ID. A container on the host's network must reach a listener of this program.
//
// Private daemons are children of this program and share everything; they are not checked.
package locality

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Subject is a target of a daemon of the user's.
type Subject struct {
	// Daemon names the daemon in reasons.
	Daemon string
	Engine engine.Engine
	// WithLimit bounds the run of one container.
	WithLimit func(context.Context) (context.Context, context.CancelFunc)
	// Process returns the process of a running container by the daemon's report, and the IDs that only this container has.
	Process func(context.Context, engine.Container) (Process, error)
	// NeedsProcess means that the engine waits for the exit of the process that the daemon reports. It must then be visible here.
	NeedsProcess bool
	// Machine is the daemon's description of its machine.
	Machine Machine
	// Users is the reason why root in a container is another user here, if the daemon reports it.
	Users string
}

// Process is a process of a container in the daemon's report.
type Process struct {
	PID int // 0 if the daemon reports none
	IDs []string
}

// Findings are the results of a check.
type Findings struct {
	// Missing are the capabilities that the target lacks because of the daemon's place.
	Missing engine.Missing
	// Cgroups reports that a cgroup that this program names is the same for the daemon.
	Cgroups bool
	// Notes are the parts that are not shared and that no capability needs.
	Notes []string
}

// Check checks a target whose containers are not in cgroups of the run yet. The error means that a plain container does not work.
func Check(ctx context.Context, s engine.Session, subject Subject) (Findings, error) {
	c := check{
		Subject: subject, Findings: Findings{Missing: engine.Missing{}}, session: s,
		proc: "/proc", selinux: selinuxDir, signal: func(pid int) error { return unix.Kill(pid, 0) },
	}
	err := c.all(ctx) // before the findings are read
	return c.Findings, err
}

// check is one check.
type check struct {
	Subject
	Findings
	session engine.Session
	// proc and selinux are directories of the kernel, except in tests.
	proc, selinux string
	// signal is kill with the signal 0, which is sent to no process: the error shows whether the process exists. Tests replace it.
	signal func(pid int) error
	// foreign is the proof of another kernel; empty without one.
	foreign string
	// uid is the user here of root in the container; known is false if it is not visible.
	uid   int
	known bool
}

func (c *check) all(ctx context.Context) error {
	visible, err := c.findProcess(ctx)
	if err == nil && c.NeedsProcess && !visible {
		err = &engine.UnsupportedError{What: "the exit of a container", Reason: c.Missing[engine.OnHost] + "; the daemon has no event of an exit that could take the place of the process"}
	}
	if err != nil {
		return err
	}
	isShared := false
	for _, d := range []struct {
		dir        string
		capability engine.Capability
	}{{c.session.Data, engine.CanBind}, {c.session.Memory, engine.CanBindMemory}} {
		if d.dir == "" {
			continue // the host has no such medium
		}
		reason, err := c.bind(ctx, d.dir)
		if err != nil {
			return err
		}
		if reason != "" {
			c.Missing[d.capability] = reason
		} else {
			isShared = isShared || c.foreign == ""
		}
	}
	if c.foreign == "" && !visible && !isShared {
		c.foreign = c.Machine.differs(thisMachine())
	}
	if c.foreign != "" {
		c.isElsewhere()
		return nil
	}
	return c.network(ctx)
}

// isElsewhere records that the daemon is on another machine.
func (c *check) isElsewhere() {
	reason := fmt.Sprintf("%s runs on another machine or in a virtual machine: %s; start Touchstone there, or use --managed for a private daemon here", c.Daemon, c.foreign)
	for _, capability := range []engine.Capability{engine.OnMachine, engine.OnHost, engine.NetworkHost, engine.NetworkBridge} {
		c.Missing[capability] = reason
	}
	c.Cgroups = false
	c.Notes = append(c.Notes, reason)
}

// spawned counts the containers of all checks. A daemon may hold the name of a container whose creation hangs.
var spawned atomic.Int64

// spec describes the next container of the check.
func (c *check) spec(network engine.Network, program ...string) engine.Spec {
	return c.session.TestSpec(fmt.Sprintf("-place-%03d", spawned.Add(1)), network, program...)
}

// run runs a container to its end. The error of a container that could not run is in refusal; err is for the end of the context.
func (c *check) run(ctx context.Context, spec engine.Spec) (exit engine.Exit, refusal, err error) {
	limitCtx, cancel := c.WithLimit(ctx)
	defer cancel()
	container, refusal := c.Engine.Create(limitCtx, spec)
	if refusal == nil {
		if refusal = container.Start(limitCtx); refusal == nil {
			exit, refusal = container.Wait(limitCtx)
		}
		refusal = errors.Join(refusal, engine.Undo(ctx, container))
	}
	if ctx.Err() != nil {
		return exit, refusal, context.Cause(ctx)
	}
	return exit, refusal, nil
}

// runTwice is run, which is repeated once if the container could not run: a runtime may fail once in many calls.
func (c *check) runTwice(ctx context.Context, spec func() engine.Spec) (exit engine.Exit, refusal, err error) {
	exit, refusal, err = c.run(ctx, spec())
	if refusal == nil || err != nil {
		return exit, refusal, err
	}
	return c.run(ctx, spec())
}

// inContainer returns the remedy for a program that itself runs in a container, or fallback.
func (c *check) inContainer(option, fallback string) string {
	if c.session.Container == "" {
		return fallback
	}
	return fmt.Sprintf("this program itself runs in a container (%s): start that container with %s, or start Touchstone outside of it", c.session.Container, option)
}

// token is an argument of the process of the check's first container, and of no other process.
func (c *check) token() string { return "/" + c.session.RunID + "-place" }

// waiting is a program that waits, with a word in its arguments that no other process has.
func waiting(token string) []string {
	return probe.Sequence("/", workload.Program{Args: probe.Pause()}, workload.Program{Args: []string{token}}).Args
}
