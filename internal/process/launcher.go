// Package process starts the processes of the host and learns of their end, and of
// the end of those they leave behind.
//
// An OCI runtime's create command leaves the container's process behind as an
// orphan. Its end must be known at once, with its exit status and what it cost, and
// it must be reaped, or the runtime believes that it still runs. The process
// that runs Touchstone therefore becomes a child subreaper, and a [Launcher]
// reaps every orphan. It reaps its own children, too, on the same signal: a thread that
// waited for each in the kernel would cost more than starting it does. That
// only works if all children of the program are started here: lint forbids os/exec
// elsewhere.
//
// All forks are made by one thread of the launcher's own. That thread can be put
// into a cgroup by itself (v1) and into a mount namespace of its own, so that what
// it starts is accounted and isolated from its first instruction, and the mount
// namespace ends with the program however that ends.
//
// Rejected: scanning /proc/self/task/*/children (costs grow with the number of
// containers); a helper process that forks for us (a second program to install,
// protect and keep alive); moving the whole program into the namespace (its own
// view of the host would change).
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

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

// Launcher starts processes. There can be one at a time in a program, because
// it owns SIGCHLD, the subreaper attribute and the timer slack.
type Launcher struct {
	requests chan request
	retired  chan struct{} // closed when the forking thread has ended
	signals  chan os.Signal
	stopped  chan struct{} // closed when the reaping goroutine has ended

	mu       sync.Mutex // held while forking and while reaping, so that no child is reaped before it is known
	children map[int]*Child
	orphans  map[int]*Orphan
	ended    map[int]Exit // orphans that ended before they were adopted
	cpu      time.Duration
	born     *os.File // cgroup v2: where children are born
	null     *os.File // what children read that get no input
}

type request struct {
	do   func() error
	done chan error
}

// Options say in what surroundings processes start.
type Options struct {
	// Hide lists mount points that the started processes do not see.
	Hide []string
}

// exists tells that there is a launcher. A second one would reap the first one's children.
var exists atomic.Bool

// New makes this program the subreaper of all that it starts.
func New(opts Options) (*Launcher, error) {
	if !exists.CompareAndSwap(false, true) {
		return nil, errors.New("make a launcher of processes: there is one already")
	}
	usualSlack() // before it is changed
	// Makes package os try out pidfds now: it does so by forking, and that child must
	// not be taken for an orphan.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("become a child subreaper: %w", err), giveBack(null))
	}
	setSlack(slack)
	l := &Launcher{
		requests: make(chan request),
		retired:  make(chan struct{}),
		signals:  make(chan os.Signal, 1),
		stopped:  make(chan struct{}),
		children: map[int]*Child{},
		orphans:  map[int]*Orphan{},
		ended:    map[int]Exit{},
		null:     null,
	}
	ready := make(chan error)
	go l.fork(opts, ready)
	if err := <-ready; err != nil {
		return nil, errors.Join(err, giveBack(null))
	}
	signal.Notify(l.signals, unix.SIGCHLD)
	go func() {
		defer close(l.stopped)
		for range l.signals {
			l.reap()
		}
	}()
	return l, nil
}

// fork is the thread that makes all children. It must not be the program's main
// thread, whose namespace and cgroup /proc/self shows.
func (l *Launcher) fork(opts Options, ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if unix.Gettid() == os.Getpid() {
		go l.fork(opts, ready)
		<-l.retired // holds the main thread until the other one has ended
		return
	}
	defer close(l.retired)
	// What is started here is to have timers as it would have without us.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(usualSlack()), 0, 0, 0); err != nil {
		ready <- fmt.Errorf("set the timer slack of children: %w", err)
		return
	}
	if err := hide(opts.Hide); err != nil {
		ready <- err
		return
	}
	ready <- nil
	for r := range l.requests {
		r.done <- r.do()
	}
	if l.born != nil {
		_ = l.born.Close()
	}
}

// hide unmounts mount points in a new mount namespace of the calling thread.
func hide(points []string) error {
	if len(points) == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach the mount namespace: %w", err)
	}
	for _, p := range points {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s in a private mount namespace: %w", p, err)
		}
	}
	return nil
}

// do runs f on the forking thread.
func (l *Launcher) do(f func() error) error {
	r := request{f, make(chan error, 1)}
	l.requests <- r
	return <-r.done
}

// Place makes all processes that are started from now on begin in a cgroup: on
// v1 the one with these tasks files, on v2 the one of this directory, which is the
// launcher's to close from then on; nil is this program's own. If it fails they may be in
// one group in some hierarchies and in another in others, until it succeeds.
func (l *Launcher) Place(tasks []string, dir *os.File) error {
	return l.do(func() error {
		if l.born != nil {
			_ = l.born.Close()
		}
		l.born = dir
		var errs []error
		for _, file := range tasks {
			if err := os.WriteFile(file, []byte("0"), 0); err != nil {
				errs = append(errs, fmt.Errorf("move into cgroup: %w", err))
			}
		}
		return errors.Join(errs...)
	})
}

// Child is a process that was started here.
type Child struct {
	cmd   *exec.Cmd
	ended chan Exit // gets its end from who reaps it
}

// Spawn starts cmd. Its end is to be had from the child, not from cmd.Wait.
// The command gets a process group of its own, so that a ^C at the terminal
// reaches only Touchstone, which then ends it in order.
func (l *Launcher) Spawn(cmd *exec.Cmd) (*Child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.WaitDelay = outputGrace
	if cmd.Stdin == nil {
		cmd.Stdin = l.null // package exec would open it for each command
	}
	c := &Child{cmd: cmd, ended: make(chan Exit, 1)}
	if cmd.Cancel != nil { // it obeys a context
		cmd.Cancel = func() error { return l.killGroup(c) }
	}
	err := l.do(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.born != nil {
			cmd.SysProcAttr.UseCgroupFD = true
			cmd.SysProcAttr.CgroupFD = int(l.born.Fd())
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		l.children[cmd.Process.Pid] = c
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Wait returns when the child has ended and its output has been copied. It must be called
// once.
//
// It does not wait in the kernel: a thread that does is one more to wake, and Go's monitor looks
// after it every 20 µs for the first 10 ms.
func (c *Child) Wait() Exit {
	exit := <-c.ended
	// The error says that it has been reaped, or speaks of output cut off after the grace.
	_ = c.cmd.Wait()
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
func (l *Launcher) killGroup(c *Child) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	pid := c.cmd.Process.Pid
	if l.children[pid] != c { // reaped, so that the ID may be another's by now
		return os.ErrProcessDone
	}
	return unix.Kill(-pid, unix.SIGKILL)
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

// Orphan is a process that something started by the launcher left behind.
type Orphan struct {
	pid  int
	done chan struct{}
	exit Exit
}

// Adopt gives the orphan with this pid, which may have ended already. It must
// be one: the pid of any other process is never reported as ended.
func (l *Launcher) Adopt(pid int) *Orphan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o, ok := l.orphans[pid]; ok {
		return o
	}
	o := &Orphan{pid: pid, done: make(chan struct{})}
	exit, ended := l.ended[pid]
	delete(l.ended, pid)
	// The ID of an orphan that ended long ago may be another process's by now.
	if ended && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		o.exit = exit
		close(o.done)
		return o
	}
	l.orphans[pid] = o
	return o
}

// Pid is the process's ID.
func (o *Orphan) Pid() int { return o.pid }

// Done is closed when the process has ended and was reaped.
func (o *Orphan) Done() <-chan struct{} { return o.done }

// Exit is how the process ended, once Done is closed.
func (o *Orphan) Exit() Exit { return o.exit }

// CPU is the time used by all processes that have ended so far, children and orphans,
// each with the descendants that it waited for.
func (l *Launcher) CPU() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cpu
}

// rememberedOrphans bounds the exits kept for orphans that nobody has adopted (yet):
// sandbox helpers and the like, which nobody ever will.
const rememberedOrphans = 4096

// reap takes the exit status of every child and orphan that has ended.
func (l *Launcher) reap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pid := endedChild(); pid != 0; pid = endedChild() {
		if c, ok := l.children[pid]; ok {
			delete(l.children, pid)
			exit := c.reap()
			l.cpu += exit.CPU
			c.ended <- exit
			continue
		}
		var status syscall.WaitStatus
		var usage syscall.Rusage
		if _, err := syscall.Wait4(pid, &status, 0, &usage); err != nil {
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			return
		}
		exit := Exit{status, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
		l.cpu += exit.CPU
		if o, ok := l.orphans[pid]; ok {
			delete(l.orphans, pid)
			o.exit = exit
			close(o.done)
			continue
		}
		if len(l.ended) == rememberedOrphans {
			clear(l.ended)
		}
		l.ended[pid] = exit
	}
}

// reap takes the exit status of a child that has ended, so that it does not wait. Package os does
// it, which has a descriptor of the process to close.
func (c *Child) reap() Exit {
	exit := Exit{}
	if s, err := c.cmd.Process.Wait(); err == nil {
		exit.Status, _ = s.Sys().(syscall.WaitStatus)
		exit.CPU = s.UserTime() + s.SystemTime()
	}
	return exit
}

// endedChild gives the pid of some child that has ended and leaves it unreaped; 0 if
// there is none.
func endedChild() int {
	// siginfo_t of the 64-bit architectures: three ints, padding, then the
	// union, which begins with the pid for SIGCHLD. x/sys/unix hides the union.
	var info struct {
		_   [4]int32
		pid int32
		_   [108]byte
	}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)),
			unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return 0
		}
		return int(info.pid)
	}
}

// Close ends the forking thread and the reaping. Nothing that was started must
// run any more. It must be called once.
func (l *Launcher) Close() error {
	close(l.requests)
	<-l.retired
	signal.Stop(l.signals)
	close(l.signals)
	<-l.stopped
	l.reap()
	return giveBack(l.null)
}

// giveBack undoes what New has done to the program.
func giveBack(null *os.File) error {
	defer exists.Store(false)
	setSlack(usualSlack())
	_ = null.Close() // which may be nil
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("stop being a child subreaper: %w", err)
	}
	return nil
}
