package process

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Adopt returns the orphan with this pid, which may have exited already. If the process is not an orphan, its exit is never
// reported.
func (l *Launcher) Adopt(pid int) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.awaited[pid]; ok {
		return p
	}
	p := &Process{l: l, pid: pid, done: make(chan struct{})}
	exit, hasEnded := l.ended[pid]
	delete(l.ended, pid)
	// Another process may have the ID of an orphan that exited long ago.
	if hasEnded && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		l.strays--
		p.exit = exit
		close(p.done)
		return p
	}
	l.awaited[pid] = p
	if p.pidfd = l.open(pid); p.pidfd != nil {
		go p.await()
	}
	return p
}

// Pid returns the process's ID.
func (p *Process) Pid() int { return p.pid }

// Done returns a channel that is closed when the process has exited and is reaped. For a child, a caller must wait meanwhile.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns the exit of the process. It is valid once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// CPU returns the CPU time of all reaped processes, children and orphans, each with the descendants that it waited for.
func (l *Launcher) CPU() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cpu
}

// Started is the number of processes that the launcher has started so far.
func (l *Launcher) Started() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started
}

// Strays returns the number of strays so far. A stray is an exited orphan that is not adopted, such as a sandbox helper.
func (l *Launcher) Strays() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reapAll() // includes exits whose signal is still pending
	return l.strays
}

// IgnoreStrays turns the SIGCHLD handler off or on again. While it is off, strays stay unreaped. While it is on, each exit
// of a process sends a signal, which interrupts a thread, wakes two more and makes the launcher check all children. Ignore strays only for
// runtimes that leave none: a runtime that leaves strays may wait until they are reaped.
func (l *Launcher) IgnoreStrays(ignore bool) {
	if l.noPidfd != nil { // without pidfds the launcher depends on the signal
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

// signalHandler has the layout of the kernel's struct sigaction on 64-bit architectures. Architectures without sa_restorer, such as
// riscv64, use three of the four words. The zero value is the default action. For SIGCHLD the default discards the signal. signal.Ignore
// is no alternative, because the kernel would then reap the children.
type signalHandler [4]uint64

// setHandler replaces the handler of a signal behind the back of package signal, and returns the previous handler.
func setHandler(signal unix.Signal, handler signalHandler) (previous signalHandler) {
	// The call fails only for an invalid signal number.
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal),
		uintptr(unsafe.Pointer(&handler)), uintptr(unsafe.Pointer(&previous)), 8, 0, 0)
	return previous
}

// open returns a pidfd in Go's poller, or nil if that is impossible.
func (l *Launcher) open(pid int) *os.File {
	if l.noPidfd != nil {
		return nil
	}
	pidfd, err := OpenPidfd(pid)
	if err != nil {
		return nil
	}
	return pidfd
}

// await returns when the process has exited and is reaped. It closes the pidfd, and returns at once without one.
func (p *Process) await() {
	if p.pidfd == nil {
		return
	}
	defer func() { _ = p.pidfd.Close() }()
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(uintptr) bool {
		p.l.mu.Lock()
		defer p.l.mu.Unlock()
		return p.l.awaited[p.pid] != p || p.l.collect(p.pid)
	})
}

// rememberedOrphans bounds the number of exits kept for later calls of Adopt. Sandbox helpers are never adopted.
const rememberedOrphans = 4096

// reap reaps all exited children and orphans.
func (l *Launcher) reap() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reapAll()
}

// reapAll stops at an unknown child while the forking thread forks: the child may be the one that is not registered yet.
func (l *Launcher) reapAll() {
	for pid := endedChild(unix.P_ALL, 0); pid != 0; pid = endedChild(unix.P_ALL, 0) {
		if l.forking && l.awaited[pid] == nil {
			l.deferred = true
			return
		}
		l.collect(pid)
	}
}

// collect reaps a process and passes its exit on to the waiting goroutines. It returns false if the process is still running.
func (l *Launcher) collect(pid int) bool {
	p := l.awaited[pid]
	exit, err := Exit{}, error(nil)
	if p != nil && p.cmd != nil {
		if endedChild(unix.P_PID, pid) == 0 {
			return false
		}
		exit = p.reap()
	} else if exit, err = reapOne(pid); err != nil {
		return !errors.Is(err, syscall.EAGAIN)
	}
	l.cpu += exit.CPU
	if p != nil {
		delete(l.awaited, pid)
		if !p.stuck {
			p.exit = exit
			close(p.done)
		}
		return true
	}
	if len(l.ended) == rememberedOrphans {
		clear(l.ended)
	}
	l.ended[pid] = exit
	l.strays++
	return true
}

// reap reaps an exited child through package os, which must also close its descriptor of the process.
func (p *Process) reap() Exit {
	exit := Exit{}
	if s, err := p.cmd.Process.Wait(); err == nil {
		exit.Status, _ = s.Sys().(syscall.WaitStatus)
		exit.CPU = s.UserTime() + s.SystemTime()
	}
	return exit
}

// reapOne reaps an exited process. It returns EAGAIN if the process is running, and ECHILD if it is not a child of this program. A signal
// does not interrupt the call, because it does not block.
func reapOne(pid int) (Exit, error) {
	var status syscall.WaitStatus
	var usage syscall.Rusage
	switch got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, &usage); {
	case err != nil:
		return Exit{}, err
	case got != pid:
		return Exit{}, syscall.EAGAIN
	}
	return Exit{status, time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}, nil
}

// endedChild returns the pid of an exited child, or 0. It checks all children or the one with an ID. It does not reap the child.
func endedChild(idType, id int) int {
	// The layout of siginfo_t on 64-bit architectures: three ints, padding, and a union, whose first field for SIGCHLD is the
	// pid. x/sys/unix does not export the union.
	var info struct {
		_   [4]int32
		pid int32
		_   [108]byte
	}
	if _, _, errno := unix.Syscall6(unix.SYS_WAITID, uintptr(idType), uintptr(id), uintptr(unsafe.Pointer(&info)),
		unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, 0, 0); errno != 0 {
		return 0
	}
	return int(info.pid)
}
