package process

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
		l.strays--
		o.exit = exit
		close(o.done)
		return o
	}
	l.orphans[pid] = o
	if pidfd := l.open(pid); pidfd != nil {
		go l.await(pidfd, func() bool { return l.orphans[pid] != o || l.collect(pid) })
	}
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

// Strays tells how many orphans have ended that nobody had adopted: sandbox helpers and the like.
func (l *Launcher) Strays() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reapAll() // whose end has not been signalled yet
	return l.strays
}

// IgnoreStrays says whether orphans that nobody has adopted may stay unreaped, until it is
// called again with false. Otherwise every process that ends sends a signal, which
// interrupts a thread and wakes two more, and all children have to be looked through. It is for
// what is known to leave no strays; a runtime that does may wait until they are reaped.
func (l *Launcher) IgnoreStrays(ignore bool) {
	if !l.pidfds { // the signal is all there is
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ignore == (l.handler != signalHandler{}) {
		return
	}
	if ignore {
		l.handler = setHandler(unix.SIGCHLD, signalHandler{})
		return
	}
	setHandler(unix.SIGCHLD, l.handler)
	l.handler = signalHandler{}
	l.reapAll()
}

// signalHandler is the kernel's struct sigaction on 64-bit architectures, or room for it: those without
// sa_restorer, such as riscv64, use three of the four words. The zero value is the default action, which for
// SIGCHLD is that there is no signal at all; to ignore it by package signal would let the kernel reap the children.
type signalHandler [4]uint64

// setHandler replaces the handler of a signal, in a way that package signal does not know of, and gives
// the one before.
func setHandler(signal unix.Signal, handler signalHandler) (before signalHandler) {
	// It fails for numbers that are no signals only.
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal),
		uintptr(unsafe.Pointer(&handler)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

// pollable tells whether the kernel has pidfds that can be polled, as it does since Linux 5.3.
func pollable() bool {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	pidfd := polled(fd)
	defer func() { _ = pidfd.Close() }()
	return pidfd.SetDeadline(time.Time{}) == nil
}

// open gives a pidfd in Go's poller; nil if there is none.
func (l *Launcher) open(pid int) *os.File {
	if !l.pidfds {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	return polled(fd)
}

func polled(fd int) *os.File {
	// Package os polls what does not block.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK)
	return os.NewFile(uintptr(fd), "pidfd")
}

// await returns when a process has ended and reaped, which is called with the lock held, has
// told so. It closes pidfd, and returns at once if that is nil.
func (l *Launcher) await(pidfd *os.File, reaped func() bool) {
	if pidfd == nil {
		return
	}
	defer func() { _ = pidfd.Close() }()
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(uintptr) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return reaped()
	})
}

// rememberedOrphans bounds the exits kept for orphans that nobody has adopted (yet):
// sandbox helpers and the like, which nobody ever will.
const rememberedOrphans = 4096

// reap takes the exit status of every child and orphan that has ended.
func (l *Launcher) reap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reapAll()
}

func (l *Launcher) reapAll() {
	for pid := endedChild(unix.P_ALL, 0); pid != 0; pid = endedChild(unix.P_ALL, 0) {
		l.collect(pid)
	}
}

// collect takes the exit status of a process if it has ended, and tells whoever waits for it. It gives
// false if the process still runs.
func (l *Launcher) collect(pid int) bool {
	c := l.children[pid]
	exit, err := Exit{}, error(nil)
	if c != nil && c.cmd != nil {
		if endedChild(unix.P_PID, pid) == 0 {
			return false
		}
		exit = c.reap()
	} else if exit, err = reapOne(pid); err != nil {
		return !errors.Is(err, syscall.EAGAIN)
	}
	l.cpu += exit.CPU
	if c != nil {
		delete(l.children, pid)
		c.ended <- exit
		return true
	}
	if o, ok := l.orphans[pid]; ok {
		delete(l.orphans, pid)
		o.exit = exit
		close(o.done)
		return true
	}
	if len(l.ended) == rememberedOrphans {
		clear(l.ended)
	}
	l.ended[pid] = exit
	l.strays++
	return true
}

// reap takes the exit status of a child that has ended. Package os does it, which has a descriptor
// of the process to close.
func (c *Child) reap() Exit {
	exit := Exit{}
	if s, err := c.cmd.Process.Wait(); err == nil {
		exit.Status, _ = s.Sys().(syscall.WaitStatus)
		exit.CPU = s.UserTime() + s.SystemTime()
	}
	return exit
}

// reapOne takes the exit status of a process that has ended. The error is EAGAIN if it
// runs, and ECHILD if it is none of ours.
func reapOne(pid int) (Exit, error) {
	var status syscall.WaitStatus
	var usage syscall.Rusage
	for {
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, &usage)
		switch {
		case got == pid:
			return Exit{status, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}, nil
		case err == nil:
			return Exit{}, syscall.EAGAIN
		case !errors.Is(err, syscall.EINTR):
			return Exit{}, err
		}
	}
}

// endedChild gives the pid of some child that has ended, among all or the one with an ID, and leaves it
// unreaped; 0 if there is none.
func endedChild(idType, id int) int {
	// siginfo_t of the 64-bit architectures: three ints, padding, then the
	// union, which begins with the pid for SIGCHLD. x/sys/unix hides the union.
	var info struct {
		_   [4]int32
		pid int32
		_   [108]byte
	}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, uintptr(idType), uintptr(id), uintptr(unsafe.Pointer(&info)),
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
