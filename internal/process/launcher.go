// Package process starts the processes of the host and learns of their end, and of
// the end of those they leave behind.
//
// An OCI runtime's create command leaves the container's process behind as an
// orphan. Its end must be known at once, with its exit status and what it cost, and
// it must be reaped, or the runtime believes that it still runs. The process
// that runs Touchstone therefore becomes a child subreaper, and a [Launcher]
// reaps every orphan. Whoever waits for a process, child or orphan, does so by its pidfd in Go's
// poller, which costs one wake-up of a thread; a thread that waited for each in the kernel
// would cost more than starting it does. SIGCHLD is for what nobody waits for, see
// [Launcher.IgnoreStrays]. All of that only works if all children of the program are started here:
// lint forbids os/exec elsewhere.
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
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

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
	ended    map[int]Exit // orphans that ended before they were adopted, or never will be
	strays   int          // how many orphans ended that were not adopted so far
	cpu      time.Duration

	born    *os.File      // cgroup v2: where children are born
	null    *os.File      // what children read that get no input
	pidfds  bool          // the kernel has pidfds that can be polled
	handler signalHandler // of SIGCHLD while strays are ignored
}

type request struct {
	do   func() error
	done chan error
}

// Options say in what surroundings processes start.
type Options struct {
	// Hide lists mount points that the started processes do not see.
	Hide []string
	// Private gives the started processes a mount namespace of their own also if there is nothing to hide, for
	// mounts that only they see: see Inside.
	Private bool
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
		pidfds:   pollable(),
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
	if err := setForker(unix.Gettid()); err != nil {
		ready <- err
		return
	}
	defer unsetForker()
	// What is started here is to have timers as it would have without us.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(usualSlack()), 0, 0, 0); err != nil {
		ready <- fmt.Errorf("set the timer slack of children: %w", err)
		return
	}
	if opts.Private || len(opts.Hide) > 0 {
		if err := hide(opts.Hide); err != nil {
			ready <- err
			return
		}
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

// Inside calls f on the thread that starts processes. What f mounts, if the launcher is private, is there for them, is not
// on the host, and goes with this program however that ends. Nothing starts meanwhile.
func (l *Launcher) Inside(f func() error) error { return l.do(f) }

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

// Close ends the forking thread and the reaping. Nothing that was started must
// run any more. It must be called once.
func (l *Launcher) Close() error {
	l.IgnoreStrays(false)
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
