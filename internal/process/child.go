package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
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
	l      *Launcher
	pid    int
	cmd    *exec.Cmd // nil for a Program and an orphan
	pidfd  *os.File  // nil without pidfds
	done   chan struct{}
	exit   Exit
	stuck  bool // it was killed and has not exited; done is closed
	unused bool // its caller does not wait for the start any more
}

// Spawn starts cmd. Use Process.Wait instead of cmd.Wait.
// The command gets its own process group. So a ^C at the terminal reaches only Touchstone, which then stops the command
// in order. Without an environment of its own it gets [Environment].
func (l *Launcher) Spawn(cmd *exec.Cmd) (*Process, error) {
	return l.spawn(context.Background(), cmd, nil)
}

// spawn starts cmd, in the PID and IPC namespaces of first unless it is nil.
func (l *Launcher) spawn(ctx context.Context, cmd *exec.Cmd, first *Process) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.Env == nil {
		cmd.Env = Environment()
	}
	cmd.WaitDelay = outputGrace
	if cmd.Stdin == nil {
		cmd.Stdin = l.null // package exec would open it for each command
	}
	c := &Process{l: l, cmd: cmd, done: make(chan struct{})}
	if cmd.Cancel != nil { // the command has a context
		cmd.Cancel = c.end
	}
	if cmd.Err == nil && filepath.IsAbs(cmd.Path) {
		argv := l.relays.args(append([]string{cmd.Path}, cmd.Args[1:]...))
		if argv[0] != cmd.Path {
			cmd.Path, cmd.Args = argv[0], argv
		}
	}
	fork := func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	}
	if first == nil {
		return c, l.start(ctx, c, cmd.SysProcAttr, fork)
	}
	return c, l.start(ctx, c, cmd.SysProcAttr, func() (int, error) { return l.beside(first, fork) })
}

// start calls fork on the forking thread and registers the child. The lock is not held meanwhile, so that other exits are reaped.
func (l *Launcher) start(ctx context.Context, c *Process, attr *syscall.SysProcAttr, fork func() (pid int, err error)) error {
	err := l.do(ctx, func() error {
		if l.halted.Load() {
			return ErrHalted
		}
		attr.Setpgid = true
		if l.cgroup != nil {
			attr.UseCgroupFD, attr.CgroupFD = true, int(l.cgroup.Fd())
		}
		l.mu.Lock()
		for l.killers > 0 { // a kill would wait forever for the end of a long queue
			l.changed.Wait()
		}
		l.forking = true
		l.mu.Unlock()
		_ = l.oom.raise() // openOOMScore has tested both
		pid, err := fork()
		_ = l.oom.lower()
		if err != nil && l.cgroup != nil {
			err = forkError(l.cgroup.Name(), err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil {
			c.pid, c.pidfd = pid, l.open(pid)
			l.awaited[pid] = c
			l.started++
			if c.unused {
				go func() { _ = c.end() }()
			}
		}
		l.forking = false
		l.changed.Broadcast()
		if l.deferred {
			l.deferred = false
			l.reapAll()
		}
		return err
	})
	if errors.Is(err, ErrForking) {
		l.mu.Lock()
		c.unused = true
		isStarted := c.pid != 0
		l.mu.Unlock()
		if isStarted {
			_ = c.end()
		}
	}
	return err
}

// Wait returns when the child has exited and its output has been copied. It must be called
// once.
func (p *Process) Wait() Exit {
	p.await()
	<-p.done
	if p.cmd != nil && !p.stuck {
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
	return c.report(), nil
}

// report returns a channel that receives the result of Wait.
func (p *Process) report() <-chan Exit {
	done := make(chan Exit, 1)
	go func() { done <- p.Wait() }()
	return done
}

// Run starts cmd, which has the same context, and waits until it exits. If the context is cancelled, Run returns the context's cause, within a
// *StuckError if the killed command does not exit. It returns an *ExitError if the exit code is not 0.
func (l *Launcher) Run(ctx context.Context, cmd *exec.Cmd) error {
	command := cmd.Path
	c, err := l.spawn(ctx, cmd, nil)
	if err != nil {
		return err
	}
	exit := c.Wait()
	if err := c.verdict(ctx, command); err != nil {
		return err
	}
	if exit.Status != 0 {
		return &ExitError{Command: command, Exit: exit}
	}
	return nil
}

// Program is a program for Call. An exec.Cmd would cost more: it copies output, searches PATH, and starts a goroutine for the
// context.
type Program struct {
	Args           []string // the first is the program's path
	Env            []string // nil: Environment()
	Stdout, Stderr *os.File
}

// Call runs a program without input until it exits. Use it for programs within a timed region. If the context ends, Call kills the
// program with its descendants and returns the context's cause, within a *StuckError if the program does not exit.
func (l *Launcher) Call(ctx context.Context, p Program) (Exit, error) {
	if ctx.Err() != nil {
		return Exit{}, context.Cause(ctx)
	}
	if p.Env == nil {
		p.Env = Environment()
	}
	c := &Process{l: l, done: make(chan struct{})}
	attr := &syscall.ProcAttr{
		Env: p.Env, Files: []uintptr{l.null.Fd(), p.Stdout.Fd(), p.Stderr.Fd()}, Sys: &syscall.SysProcAttr{},
	}
	argv := l.relays.args(p.Args)
	err := l.start(ctx, c, attr.Sys, func() (int, error) { return syscall.ForkExec(argv[0], argv, attr) })
	runtime.KeepAlive(p)
	if err != nil && ctx.Err() != nil {
		return Exit{}, err
	}
	if err != nil {
		return Exit{}, &os.PathError{Op: "fork/exec", Path: p.Args[0], Err: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.end() })
	exit := c.Wait()
	stop()
	return exit, c.verdict(ctx, p.Args[0])
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
