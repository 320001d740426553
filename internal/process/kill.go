package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// killGrace is the time that a killed process has for its exit. Then it is given up, because it waits in the kernel.
const killGrace = 2 * time.Second

// forkGrace limits the wait for a fork before a kill. A fork takes milliseconds, unless its thread waits in the kernel.
const forkGrace = time.Second

// StuckError reports a process that was killed and has not exited: it waits in the kernel, for example for a file server that does not
// answer. It is reaped if it exits later.
type StuckError struct {
	Command string
	// Err is the reason why the process was killed.
	Err error

	process *Process
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("%v; process %d (%s) was killed and has not exited, because it waits in the kernel; check its file system and its disk",
		e.Err, e.process.pid, e.Command)
}

// Unwrap returns the reason why the process was killed.
func (e *StuckError) Unwrap() error { return e.Err }

// Ended reports whether the process has exited after all.
func (e *StuckError) Ended() bool {
	l := e.process.l
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.awaited[e.process.pid] != e.process || l.collect(e.process.pid)
}

// end kills the process and everything that it has started. Wait returns soon in any case.
func (p *Process) end() error {
	err := p.kill()
	graceCtx, cancel := context.WithTimeout(context.Background(), p.l.grace)
	context.AfterFunc(graceCtx, func() {
		cancel()
		p.giveUp()
	})
	return err
}

// giveUp ends the wait for a killed process that has not exited. The launcher still reaps it.
func (p *Process) giveUp() {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.l.awaited[p.pid] != p || p.stuck || p.l.collect(p.pid) {
		return
	}
	p.stuck = true
	p.exit.Status = syscall.WaitStatus(unix.SIGKILL)
	close(p.done)
	if p.pidfd != nil {
		_ = p.pidfd.SetReadDeadline(time.Unix(1, 0)) // ends await
	}
}

// verdict returns the error of a command under a context, after Wait.
func (p *Process) verdict(ctx context.Context, command string) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case p.stuck:
		return &StuckError{Command: command, Err: context.Cause(ctx), process: p}
	default:
		return context.Cause(ctx)
	}
}

// kill kills a child with its process group and its descendants, also in other process groups and sessions. Containers, which the child has
// left behind in cgroups of their own, survive.
//
// The descendants are stopped first, because the child of an exited process loses its parent, and could not be found any more.
func (p *Process) kill() error {
	l := p.l
	l.mu.Lock()
	defer l.mu.Unlock()
	registered := l.awaitFork()
	if l.awaited[p.pid] != p { // already reaped: another process may have the ID now
		return os.ErrProcessDone
	}
	family := map[identity]int{} // file descriptors; -1 without pidfds
	const mostRounds = 100       // a fork bomb ends with its cgroup
	for range mostRounds {
		found := false
		for _, id := range l.family(p.pid, registered) {
			if _, isMember := family[id]; isMember {
				continue
			}
			if fd, ok := id.hold(); ok {
				found = true
				family[id] = fd
				id.signal(fd, unix.SIGSTOP)
			}
		}
		if !found {
			break
		}
	}
	err := unix.Kill(-p.pid, unix.SIGKILL)
	for id, fd := range family {
		id.signal(fd, unix.SIGKILL)
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	if len(family) > 0 {
		return nil
	}
	return err
}

// awaitFork waits until every child is registered, and reports whether that is so. After forkGrace it is not, and the unknown children may
// include one that another caller is starting. l.mu is held, and is free during the wait.
func (l *Launcher) awaitFork() (registered bool) {
	if !l.forking {
		return true
	}
	isLate := false
	limit, cancel := context.WithTimeout(context.Background(), forkGrace)
	defer cancel()
	context.AfterFunc(limit, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		isLate = true
		l.changed.Broadcast()
	})
	l.killers++
	for l.forking && !isLate {
		l.changed.Wait()
	}
	l.killers--
	l.changed.Broadcast()
	return !l.forking
}

// identity identifies a process also after its ID was given to another one.
type identity struct {
	pid     int
	started uint64 // in clock ticks since boot
}

// hold opens a pidfd, or returns -1 if the kernel has none. It returns false if the process has exited.
func (id identity) hold() (fd int, ok bool) {
	fd, err := unix.PidfdOpen(id.pid, 0)
	if err != nil {
		fd = -1
	}
	if _, startTime, ok := readStat(id.pid); ok && startTime == id.started {
		return fd, true
	}
	if fd >= 0 {
		_ = unix.Close(fd)
	}
	return -1, false
}

// signal sends a signal. It fails if the process has exited, or if it belongs to another user, like the processes of sudo without root.
func (id identity) signal(fd int, s unix.Signal) {
	if fd < 0 || refusal.Refused(unix.PidfdSendSignal(fd, s, nil, 0)) { // a filter may refuse the call, also with EPERM
		_ = unix.Kill(id.pid, s)
	}
}

// family returns a child, its descendants, and the orphans that they have left behind: unknown children of this program that are not older,
// in the child's cgroup. Unless all children are registered, no orphan is certain, and family returns none. l.mu is held.
func (l *Launcher) family(child int, registered bool) []identity {
	children := map[int][]identity{} // by parent
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if parent, startTime, ok := readStat(pid); ok {
			children[parent] = append(children[parent], identity{pid, startTime})
		}
	}
	_, startTime, ok := readStat(child)
	if !ok {
		return nil
	}
	group := cgroupsOf(child)
	found := []identity{{child, startTime}}
	for _, c := range children[os.Getpid()] {
		if registered && l.awaited[c.pid] == nil && c.started >= startTime && group != "" && cgroupsOf(c.pid) == group {
			found = append(found, c)
		}
	}
	for n := 0; n < len(found); n++ {
		found = append(found, children[found[n].pid]...)
	}
	return found
}

// readStat reads the parent and the start of a process. It reads only values that the kernel has without a lock of the process, whose holder
// may be blocked.
func readStat(pid int) (parent int, startTime uint64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name in parentheses may contain any character.
	_, rest, _ := strings.Cut(string(text), " ")
	if n := strings.LastIndexByte(rest, ')'); n >= 0 {
		rest = rest[n+1:]
	}
	fields := strings.Fields(rest)
	const parentField, startField = 1, 19 // after the name
	if len(fields) <= startField {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[parentField])
	if err != nil {
		return 0, 0, false
	}
	startTime, err = strconv.ParseUint(fields[startField], 10, 64)
	return parent, startTime, err == nil
}

// cgroupsOf returns the cgroups of a process as the kernel prints them.
func cgroupsOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	return string(text)
}
