package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// besideNamespaces are the namespaces of StartBeside, with their links in /proc/PID/ns.
var besideNamespaces = []struct {
	kind int
	link string
}{{unix.CLONE_NEWPID, "pid"}, {unix.CLONE_NEWIPC, "ipc"}}

// StartBeside is Start in the PID and IPC namespaces of first, a child of the launcher. The command has the same context. It needs root. If first has exited, the error is
// os.ErrProcessDone.
//
// A process enters a PID namespace only for its children. So the forking thread enters the namespaces for the length of the fork. A program
// that enters them itself would need a second fork, and would wait for the child to pass its exit on.
func (l *Launcher) StartBeside(ctx context.Context, cmd *exec.Cmd, first *Process) (<-chan Exit, error) {
	c, err := l.spawn(ctx, cmd, first)
	if err != nil {
		return nil, err
	}
	return c.report(), nil
}

// beside calls fork on the forking thread in the namespaces of first.
func (l *Launcher) beside(first *Process, fork func() (pid int, err error)) (pid int, err error) {
	home, err := openNamespaces("/proc/thread-self/ns")
	if err != nil {
		return 0, err
	}
	defer closeAll(home)
	namespaces, err := l.namespaces(first)
	if err != nil {
		return 0, err
	}
	defer closeAll(namespaces)
	err = enter(namespaces)
	if err == nil {
		pid, err = fork()
	}
	// The kernel refuses a fork beside an exited first process with ENOMEM.
	if err != nil && l.hasExited(first) {
		err = os.ErrProcessDone
	}
	if err := enter(home); err != nil {
		// Every later program would start in the wrong namespaces.
		panic(fmt.Sprintf("the thread that starts programs cannot return to its namespaces: %v", err))
	}
	return pid, err
}

// namespaces opens the namespaces of a child. The child is not reaped meanwhile, so no other process has its ID.
func (l *Launcher) namespaces(p *Process) ([]*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited[p.pid] != p {
		return nil, os.ErrProcessDone
	}
	files, err := openNamespaces(fmt.Sprintf("/proc/%d/ns", p.pid))
	// An exiting process has no namespaces, some time before it can be reaped.
	if err != nil && (errors.Is(err, fs.ErrNotExist) || endedChild(unix.P_PID, p.pid) != 0) {
		err = os.ErrProcessDone
	}
	return files, err
}

// hasExited reports whether a child has exited.
func (l *Launcher) hasExited(p *Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited[p.pid] != p || endedChild(unix.P_PID, p.pid) != 0 {
		return true
	}
	_, err := os.Stat(fmt.Sprintf("/proc/%d/ns/ipc", p.pid)) // see namespaces
	return errors.Is(err, fs.ErrNotExist)
}

func openNamespaces(dir string) (files []*os.File, err error) {
	for _, n := range besideNamespaces {
		f, err := os.Open(dir + "/" + n.link)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // it is only read from
	}
}

// enter enters namespaces for the next fork of the calling thread. After an error it may have entered some.
func enter(files []*os.File) error {
	for i, f := range files {
		if err := unix.Setns(int(f.Fd()), besideNamespaces[i].kind); err != nil {
			return fmt.Errorf("enter the namespace %s: %w", f.Name(), err)
		}
	}
	return nil
}
