package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Procs returns the IDs of all processes in the group and the groups below it, in any hierarchy, in ascending order. A v1
// hierarchy lists a process if one of its threads is in the group. A process of another PID namespace has no ID here and is listed
// as 0.
func (g *Group) Procs() ([]int, error) {
	var pids []int
	for _, dir := range g.allDirs() {
		found, err := procsBelow(dir)
		if err != nil {
			return nil, fmt.Errorf("list the processes of cgroup %q: %w", g.path, err)
		}
		pids = append(pids, found...)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// procsBelow lists the processes in a directory of a hierarchy and below it.
func procsBelow(dir string) ([]int, error) {
	var pids []int
	err := walk(dir, func(dir string) error {
		found, err := words(dir, "cgroup.procs")
		if gone(err) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil // removed, or a threaded group: the nearest parent that is not threaded lists its processes
		}
		if err != nil {
			return err
		}
		for _, word := range found {
			pid, err := strconv.Atoi(word)
			if err != nil {
				return fmt.Errorf("read cgroup.procs of %q: %w", dir, err)
			}
			pids = append(pids, pid)
		}
		return nil
	})
	slices.Sort(pids)
	return slices.Compact(pids), err
}

// walk visits dir and all groups below it, children first. It skips groups that are removed meanwhile.
func walk(dir string, visit func(dir string) error) error {
	entries, err := os.ReadDir(dir)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := walk(filepath.Join(dir, e.Name()), visit); err != nil {
			return err
		}
	}
	return visit(dir)
}

// gone reports whether err means that a group does not exist.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// hold opens the processes, so that their IDs cannot be reused if the kernel has pidfds. It skips processes without an ID here, init, and
// the caller.
func hold(pids []int) []*os.Process {
	var processes []*os.Process
	for _, pid := range pids {
		if pid <= 1 || pid == os.Getpid() {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			processes = append(processes, p)
		}
	}
	return processes
}

func release(processes []*os.Process) {
	for _, p := range processes {
		_ = p.Release()
	}
}

// kill sends SIGKILL. It is not an error if the process has exited.
func kill(p *os.Process) error {
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d (%s): %w", p.Pid, comm(p.Pid), err)
	}
	return nil
}

// awaitExit returns when all processes with a pidfd have exited, or with the context's error.
func awaitExit(ctx context.Context, processes []*os.Process) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("wait for processes to end: %w", err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	// When the context ends, closing the pipe wakes poll.
	defer context.AfterFunc(ctx, func() { _ = w.Close() })()

	for _, p := range processes {
		// An error of WithHandle means that the process has exited or has no pidfd.
		_ = p.WithHandle(func(pidfd uintptr) {
			fds := []unix.PollFd{{Fd: int32(r.Fd())}, {Fd: int32(pidfd), Events: unix.POLLIN}}
			for err = unix.EINTR; errors.Is(err, unix.EINTR); {
				_, err = unix.Poll(fds, -1)
			}
		})
		if err != nil {
			return fmt.Errorf("wait for processes to end: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a time that doubles with each round, from 1 to 32 ms. It is the last resort where no event exists: for the exit of a
// process without a descriptor, until the kernel has removed an exited process from its group, and until a v1 group is frozen.
func pause(ctx context.Context, round int) error {
	timer := time.NewTimer(time.Millisecond << min(round, 5))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// describe formats the first few processes for an error message.
func describe(pids []int) string {
	const limit = 5
	var items []string
	for _, pid := range pids[:min(len(pids), limit)] {
		switch pid {
		case 0:
			items = append(items, "a process of another PID namespace")
		case os.Getpid():
			items = append(items, fmt.Sprintf("%d (a thread of this process)", pid))
		default:
			items = append(items, fmt.Sprintf("%d (%s)", pid, comm(pid)))
		}
	}
	if rest := len(pids) - limit; rest > 0 {
		items = append(items, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(items, ", ")
}

// comm returns the name of a process, and its state if that explains why it does not exit.
func comm(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "exited"
	}
	_, rest, _ := strings.Cut(string(text), "(")
	i := strings.LastIndex(rest, ") ")
	if i < 0 || i+2 >= len(rest) {
		return "unknown"
	}
	states := map[byte]string{'D': ", waiting in the kernel", 'T': ", stopped", 't': ", stopped", 'Z': ", a zombie"}
	return rest[:i] + states[rest[i+2]]
}
