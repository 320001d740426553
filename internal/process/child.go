package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputGrace is how long a killed or finished command's output pipes may stay open
// (held by something it left behind) before they are closed under it.
const outputGrace = 2 * time.Second

// Exit is how a process ended and what it used.
type Exit struct {
	Status syscall.WaitStatus
	CPU    time.Duration
}

// Child is a process that was started here.
type Child struct {
	l     *Launcher
	pid   int
	cmd   *exec.Cmd // nil for a Program
	pidfd *os.File  // nil without pidfds
	ended chan Exit // gets its end from who reaps it
}

// Spawn starts cmd. Its end is to be had from the child, not from cmd.Wait.
// The command gets a process group of its own, so that a ^C at the terminal
// reaches only Touchstone, which then ends it in order.
func (l *Launcher) Spawn(cmd *exec.Cmd) (*Child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.WaitDelay = outputGrace
	if cmd.Stdin == nil {
		cmd.Stdin = l.null // package exec would open it for each command
	}
	c := &Child{l: l, cmd: cmd, ended: make(chan Exit, 1)}
	if cmd.Cancel != nil { // it obeys a context
		cmd.Cancel = c.killGroup
	}
	return c, l.start(c, cmd.SysProcAttr, func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
}

// start makes a child by a call of fork on the forking thread.
func (l *Launcher) start(c *Child, attr *syscall.SysProcAttr, fork func() (pid int, err error)) error {
	return l.do(func() (err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		attr.Setpgid = true
		if l.born != nil {
			attr.UseCgroupFD, attr.CgroupFD = true, int(l.born.Fd())
		}
		if c.pid, err = fork(); err != nil {
			return err
		}
		c.pidfd = l.open(c.pid)
		l.children[c.pid] = c
		return nil
	})
}

// Wait returns when the child has ended and its output has been copied. It must be called
// once.
func (c *Child) Wait() Exit {
	c.l.await(c.pidfd, func() bool { return c.l.children[c.pid] != c || c.l.collect(c.pid) })
	exit := <-c.ended
	if c.cmd != nil {
		// The error says that it has been reaped, or speaks of output cut off after the grace.
		_ = c.cmd.Wait()
	}
	return exit
}

// Start is Spawn for those who wait beside other things: the channel gets what Wait gives.
func (l *Launcher) Start(cmd *exec.Cmd) (<-chan Exit, error) {
	c, err := l.Spawn(cmd)
	if err != nil {
		return nil, err
	}
	done := make(chan Exit, 1)
	go func() { done <- c.Wait() }()
	return done, nil
}

// killGroup kills a command with what it has started, unless that has a process group of
// its own, as containers have. A runtime that is a script would leave what it waits for behind.
func (c *Child) killGroup() error {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.l.children[c.pid] != c { // reaped, so that the ID may be another's by now
		return os.ErrProcessDone
	}
	return unix.Kill(-c.pid, unix.SIGKILL)
}

// Run starts cmd and waits for its end. An exit code other than 0 is an
// *ExitError; a cancelled context is that context's error.
func (l *Launcher) Run(ctx context.Context, cmd *exec.Cmd) error {
	c, err := l.Spawn(cmd)
	if err != nil {
		return err
	}
	exit := c.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exit.Status != 0 {
		return &ExitError{Command: cmd.Path, Exit: exit}
	}
	return nil
}

// Program is what Call runs: an exec.Cmd without what that spends on copying, on looking for the
// program and on a goroutine for the context.
type Program struct {
	Args           []string // of which the first is the program's path
	Env            []string
	Stdout, Stderr *os.File
}

// Call runs a program, which gets no input, and gives how it ended. It is the way for what is
// called within a timed region. If the context ends it kills the program with its
// process group, and gives the context's cause.
func (l *Launcher) Call(ctx context.Context, p Program) (Exit, error) {
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	c := &Child{l: l, ended: make(chan Exit, 1)}
	attr := &syscall.ProcAttr{
		Env: p.Env, Files: []uintptr{l.null.Fd(), p.Stdout.Fd(), p.Stderr.Fd()}, Sys: &syscall.SysProcAttr{},
	}
	err := l.start(c, attr.Sys, func() (int, error) { return syscall.ForkExec(p.Args[0], p.Args, attr) })
	runtime.KeepAlive(p)
	if err != nil {
		return Exit{}, &os.PathError{Op: "fork/exec", Path: p.Args[0], Err: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.killGroup() })
	exit := c.Wait()
	stop()
	if ctx.Err() != nil {
		return exit, context.Cause(ctx)
	}
	return exit, nil
}

// ExitError says that a command did not end well.
type ExitError struct {
	Command string
	Exit    Exit
}

func (e *ExitError) Error() string {
	if e.Exit.Status.Signaled() {
		return fmt.Sprintf("%s was killed by signal %d (%s)", e.Command, int(e.Exit.Status.Signal()), e.Exit.Status.Signal())
	}
	return fmt.Sprintf("%s ended with exit code %d", e.Command, e.Exit.Status.ExitStatus())
}
