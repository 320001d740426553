// Package process starts processes on the host, and reaps them and their orphans.
//
// The create command of an OCI runtime exits and leaves the container's process as an orphan. Touchstone needs the exit of
// that process at once, with its status and CPU time. It must also reap the process, because the runtime reports an unreaped process
// as running. So Touchstone becomes a child subreaper, and a [Launcher] reaps every orphan.
//
// A caller waits for a child or an orphan through its pidfd in Go's poller. This costs one wake-up of a thread. A thread per process
// that blocks in the kernel would cost more than the start of the process. SIGCHLD handles the remaining processes, see
// [Launcher.IgnoreStrays]. This design requires that the launcher starts all children of the program, so lint forbids os/exec elsewhere.
//
// The launcher forks only on one dedicated thread. That thread can enter a cgroup (v1) and a mount namespace alone. So its
// children are accounted and isolated from their first instruction, and the mount namespace disappears when the program exits,
// also after a crash.
//
// Rejected: scanning /proc/self/task/*/children (the cost grows with the number of containers); a helper process that
// forks (a second program to install, protect and keep alive); moving the whole program into the namespace (its own view of the
// host would change).
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
	"github.com/touchstone-bench/touchstone/internal/thread"
)

// Launcher starts processes. A program can have one at a time, because a launcher owns SIGCHLD, the subreaper attribute and the
// timer slack.
type Launcher struct {
	requests chan func()
	retired  chan struct{} // closed when the forking thread has ended
	signals  chan os.Signal
	stopped  chan struct{} // closed when the reaping goroutine has ended

	mu       sync.Mutex
	awaited  map[int]*Process // children, and adopted orphans
	ended    map[int]Exit     // exits of orphans that are not adopted, or not yet
	strays   int              // the number of exited orphans that are not adopted
	started  int64            // the number of processes that were started
	cpu      time.Duration
	forking  bool       // a child may exist that is not registered in awaited
	killers  int        // kills that wait for a fork
	changed  *sync.Cond // forking or killers has changed; its lock is mu
	deferred bool       // reapAll has met an unknown child meanwhile

	hidden  []string // mount points that children do not see
	private bool     // children have their own mount namespace
	cgroup  *os.File // the cgroup v2 directory for children; nil for this program's own cgroup
	null    *os.File // standard input of children without input
	oom     *oomScore
	relays  *relays
	grace   time.Duration  // killGrace
	noPidfd error          // why pidfds cannot be polled; nil if they can
	noClone *refusal.Error // why children cannot start in a cgroup of the unified tree; nil if they can
	halted  atomic.Bool    // no further program starts
	handler signalHandler  // the handler of SIGCHLD while strays are ignored
}

// Options configure the mount namespace of children.
type Options struct {
	// Hide lists mount points that children do not see.
	Hide []string
	// Private gives children their own mount namespace, also without mount points to hide. InNamespace can mount into it.
	Private bool
}

// exists is true while the program has a launcher. A second one would reap the first one's children.
var exists atomic.Bool

// New makes this program the subreaper of all its descendants.
func New(opts Options) (*Launcher, error) {
	if !exists.CompareAndSwap(false, true) {
		return nil, errors.New("create a process launcher: the program has one already")
	}
	sealFiles()
	usualSlack() // reads the value before setSlack changes it
	// Package os forks once to test for pidfds. FindProcess triggers that test now, so that the launcher does not reap that child as
	// an orphan.
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Release()
	}
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("become a child subreaper: %w", err), restore(null))
	}
	setSlack(slack)
	l := &Launcher{
		requests: make(chan func()),
		retired:  make(chan struct{}),
		signals:  make(chan os.Signal, 1),
		stopped:  make(chan struct{}),
		awaited:  map[int]*Process{},
		ended:    map[int]Exit{},
		null:     null,
		oom:      openOOMScore("/proc/self/oom_score_adj"),
		relays:   newRelays(),
		grace:    killGrace,
		noPidfd:  pidfdRefusal(),
		noClone:  cloneRefusal(),
	}
	l.changed = sync.NewCond(&l.mu)
	l.hidden, l.private = opts.Hide, opts.Private || len(opts.Hide) > 0
	ready := make(chan error)
	thread.Go(func() { l.fork(opts, ready) })
	if err := <-ready; err != nil {
		l.oom.close()
		return nil, errors.Join(err, restore(null))
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

// fork runs on the thread that forks all children, which is in another namespace and cgroup than the program.
func (l *Launcher) fork(opts Options, ready chan<- error) {
	defer close(l.retired)
	if err := setForker(unix.Gettid()); err != nil {
		ready <- err
		return
	}
	defer unsetForker()
	// Children must have the same timer slack as without Touchstone.
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
	for f := range l.requests {
		f()
	}
	if l.cgroup != nil {
		_ = l.cgroup.Close()
	}
}

// hide unmounts mount points in a new mount namespace of the calling thread. A file system in memory covers the directory below,
// which belongs to the host: crun takes it for a cgroup, and leaves a directory with a file in it for each container. It refuses to
// work if the directory is read-only.
func hide(points []string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("create a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach the mount namespace: %w", err)
	}
	for _, p := range points {
		if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s in a private mount namespace: %w", p, err)
		}
		if err := unix.Mount("tmpfs", p, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755"); err != nil {
			return fmt.Errorf("cover %s in a private mount namespace: %w", p, err)
		}
	}
	return nil
}

// InNamespace calls f on the forking thread, in the mount namespace of the children. If Options.Private is set, children see the mounts of
// f and the host does not, and the mounts disappear when this program exits. No process starts while f runs.
func (l *Launcher) InNamespace(f func() error) error { return l.doSoon(f) }

// EmptyHidden removes the files that runtimes left at hidden mount points. No container may exist. The kernel keeps the memory
// cgroup of each of these containers until its files are removed.
func (l *Launcher) EmptyHidden() error {
	if len(l.hidden) == 0 {
		return nil
	}
	return l.doSoon(func() error {
		var errs []error
		for _, p := range l.hidden {
			left, err := os.ReadDir(p)
			errs = append(errs, err)
			for _, e := range left {
				errs = append(errs, os.RemoveAll(filepath.Join(p, e.Name())))
			}
		}
		return errors.Join(errs...)
	})
}

// ErrForking reports that the forking thread does not answer. Its last program waits in the kernel, so no other program can start.
var ErrForking = errors.New("the thread that starts programs waits in the kernel for an earlier program")

// do runs f on the forking thread. If ctx ends before the thread is free, its cause is the error. If ctx ends while f runs, f has freeLimit
// to return, and then the error is ErrForking.
func (l *Launcher) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case l.requests <- func() { done <- f() }:
	case <-ctx.Done():
		return fmt.Errorf("wait for the thread that starts programs: %w", context.Cause(ctx))
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	limitCtx, cancel := context.WithTimeout(context.Background(), freeLimit)
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-limitCtx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), ErrForking)
	}
}

// ErrHalted reports that a program did not start, because Halt was called before.
var ErrHalted = errors.New("the run ends at once, and starts no further program")

// Halt refuses all programs that have not started yet. Programs that run are left alone. A later request to the forking thread, such as
// SetCgroup, returns after the last start.
func (l *Launcher) Halt() { l.halted.Store(true) }

// freeLimit bounds the wait for the forking thread. A fork takes milliseconds on a busy host.
const freeLimit = 10 * time.Second

// doSoon runs f on the forking thread without a limit of its own. It returns ErrForking if the thread is not free soon.
func (l *Launcher) doSoon(f func() error) error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), freeLimit)
	defer cancel()
	select {
	case l.requests <- func() { done <- f() }:
		return <-done
	case <-ctx.Done():
		return ErrForking
	}
}

// SetCgroup sets the cgroup of later children. tasks are its tasks files on v1, dir is its directory on v2; a nil dir is this
// program's own cgroup. The launcher closes dir. After an error children may start in different cgroups in different v1 hierarchies
// until a later call succeeds.
//
// Only clone3 makes a child in dir. If the kernel or a filter refuses it, children start in the cgroups of tasks alone, which account and
// kill them on a hybrid host. Without tasks the error is a *refusal.Error.
func (l *Launcher) SetCgroup(tasks []string, dir *os.File) error {
	if dir != nil && l.noClone != nil {
		_ = dir.Close() // it is only read from
		if len(tasks) == 0 {
			return fmt.Errorf("move into cgroup %s: %w", dir.Name(), l.noClone)
		}
		dir = nil
	}
	return l.doSoon(func() error {
		if l.cgroup != nil {
			_ = l.cgroup.Close()
		}
		l.cgroup = dir
		var errs []error
		for _, file := range tasks {
			if err := os.WriteFile(file, []byte("0"), 0); err != nil {
				errs = append(errs, joinError(filepath.Dir(file), err))
			}
		}
		return errors.Join(errs...)
	})
}

// Close ends the forking thread and stops reaping. All children must have exited, except stuck ones. It must be called once.
func (l *Launcher) Close() error {
	l.IgnoreStrays(false)
	close(l.requests)
	ctx, cancel := context.WithTimeout(context.Background(), freeLimit)
	defer cancel()
	select {
	case <-l.retired:
	case <-ctx.Done():
		return fmt.Errorf("close the process launcher: %w", ErrForking)
	}
	signal.Stop(l.signals)
	close(l.signals)
	<-l.stopped
	l.reap()
	l.oom.close()
	return restore(l.null)
}

// restore undoes the changes of New to the program.
func restore(null *os.File) error {
	defer exists.Store(false)
	setSlack(usualSlack())
	_ = null.Close() // null may be nil
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("stop being a child subreaper: %w", err)
	}
	return nil
}

// Refusals returns the system calls that the kernel or a filter refuses to this program, and so also to the programs that it starts.
func (l *Launcher) Refusals() []*refusal.Error {
	var list []*refusal.Error
	if pidfd, ok := errors.AsType[*refusal.Error](l.noPidfd); ok {
		list = append(list, pidfd)
	}
	if l.noClone != nil {
		list = append(list, l.noClone)
	}
	return list
}
