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

// outputGrace limits how long a process left behind may hold the output pipes of an exited command open.
const outputGrace = 2 * time.Second

// Exit is the exit status of a process and the CPU time that it used.
type Exit struct {
	Status syscall.WaitStatus
	CPU    time.Duration
}

// Process is a child that the launcher started, or an orphan that a child left behind.
type Process struct {
	l     *Launcher
	pid   int
	cmd   *exec.Cmd // nil for a Program and an orphan
	pidfd *os.File  // nil without pidfds
	done  chan struct{}
	exit  Exit
}

// Spawn starts cmd. Use Process.Wait instead of cmd.Wait.
// The command gets its own process group. So a ^C at the terminal reaches only Touchstone, which then stops the command
// in order.
func (l *Launcher) Spawn(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.WaitDelay = outputGrace
	if cmd.Stdin == nil {
		cmd.Stdin = l.null // package exec would open it for each command
	}
	c := &Process{l: l, cmd: cmd, done: make(chan struct{})}
	if cmd.Cancel != nil { // the command has a context
		cmd.Cancel = c.killGroup
	}
	return c, l.start(c, cmd.SysProcAttr, func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
}

// start calls fork on the forking thread and registers the child.
func (l *Launcher) start(c *Process, attr *syscall.SysProcAttr, fork func() (pid int, err error)) error {
	return l.do(func() (err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		attr.Setpgid = true
		if l.cgroup != nil {
			attr.UseCgroupFD, attr.CgroupFD = true, int(l.cgroup.Fd())
		}
		_ = l.oom.raise() // openOOMScore has tested both
		c.pid, err = fork()
		_ = l.oom.lower()
		if err != nil {
			return err
		}
		c.pidfd = l.open(c.pid)
		l.awaited[c.pid] = c
		l.started++
		return nil
	})
}

// Wait returns when the child has exited and its output has been copied. It must be called
// once.
func (p *Process) Wait() Exit {
	p.await()
	<-p.done
	if p.cmd != nil {
		_ = p.cmd.Wait() // an error means: already reaped, or output cut off after outputGrace
	}
	return p.exit
}

// Start is Spawn for a caller that selects on several channels. The channel receives the result of Wait.
func (l *Launcher) Start(cmd *exec.Cmd) (<-chan Exit, error) {
	c, err := l.Spawn(cmd)
	if err != nil {
		return nil, err
	}
	done := make(chan Exit, 1)
	go func() { done <- c.Wait() }()
	return done, nil
}

// killGroup kills a command and its process group. Containers have their own process group and survive. Killing only the command
// would leave the children of a runtime that is a shell script.
func (p *Process) killGroup() error {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.l.awaited[p.pid] != p { // already reaped: another process may have the ID now
		return os.ErrProcessDone
	}
	return unix.Kill(-p.pid, unix.SIGKILL)
}

// Run starts cmd and waits until it exits. If the context is cancelled, Run returns the context's cause. It returns an *ExitError if
// the exit code is not 0.
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

// Program is a program for Call. An exec.Cmd would cost more: it copies output, searches PATH, and starts a goroutine for the
// context.
type Program struct {
	Args           []string // the first is the program's path
	Env            []string
	Stdout, Stderr *os.File
}

// Call runs a program without input until it exits. Use it for programs within a timed region. If the context ends, Call kills the
// program with its process group and returns the context's cause.
func (l *Launcher) Call(ctx context.Context, p Program) (Exit, error) {
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	c := &Process{l: l, done: make(chan struct{})}
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

// ExitError reports that a command exited with a code other than 0, or was killed by a signal.
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
