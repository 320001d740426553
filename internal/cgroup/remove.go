package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill kills all processes of the group and the groups below it with SIGKILL, also frozen ones, and returns when none is left. It spares
// the calling process if one of its threads is in the group. Only ctx limits it: a process in an uninterruptible wait exits
// only after that wait. Kill does nothing if the group does not exist.
//
// It writes to cgroup.kill in the unified tree (Linux 5.14 and later), and sends signals to the remaining processes one by one. Meanwhile
// the pids controller forbids new processes, so that a fork bomb cannot outrun Kill.
func (g *Group) Kill(ctx context.Context) (err error) {
	allowForks := g.forbidForks()
	defer func() { err = errors.Join(err, allowForks()) }()
	for round := 0; ; round++ {
		pids, err := g.others()
		if err != nil || len(pids) == 0 {
			return err
		}
		if round > 0 {
			err = pause(ctx, round)
		}
		if err == nil {
			err = g.killRound(ctx, pids)
		}
		if ctxErr := ctx.Err(); ctxErr != nil {
			return fmt.Errorf("kill the processes of cgroup %q: %w; still there: %s", g.path, ctxErr, describe(pids))
		}
		if err != nil {
			return fmt.Errorf("empty cgroup %q: %w", g.path, err)
		}
	}
}

// killRound kills the processes in the group and waits until they have exited. pids is an earlier list of them.
func (g *Group) killRound(ctx context.Context, pids []int) error {
	if err := g.thaw(); err != nil {
		return err
	}
	if err := g.killAtOnce(); err != nil {
		return err
	}
	processes := hold(pids)
	defer release(processes)
	// An ID may have been reused before hold opened its pidfd. Only the IDs that are still in the group now may be killed.
	survivors, err := g.others()
	if err != nil {
		return err
	}
	var kills []*os.Process
	var errs []error
	for _, p := range processes {
		if slices.Contains(survivors, p.Pid) {
			kills = append(kills, p)
			errs = append(errs, kill(p))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return awaitExit(ctx, kills)
}

// others returns the processes of the group without the calling process.
func (g *Group) others() ([]int, error) {
	pids, err := g.Procs()
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() }), err
}

// forbidForks forbids new processes in the group if it has the pids controller. It returns a function that restores the previous limit. If
// the kernel refuses the limit, Kill works without it: only a fork bomb may take more rounds.
func (g *Group) forbidForks() (allow func() error) {
	noop := func() error { return nil }
	dir, _, ok := g.dir("pids")
	limit, err := words(dir, "pids.max")
	if !ok || err != nil || len(limit) != 1 {
		return noop
	}
	if err := write(dir, "pids.max", "0"); err != nil {
		return noop
	}
	return func() error {
		if err := write(dir, "pids.max", limit[0]); err != nil && !gone(err) {
			return fmt.Errorf("allow processes in cgroup %q again: %w", g.path, err)
		}
		return nil
	}
}

// thaw thaws frozen v1 groups, because frozen processes do not handle a signal. In the unified tree they do.
func (g *Group) thaw() error {
	dir, v2, ok := g.dir("freezer")
	if !ok || v2 {
		return nil
	}
	return walk(dir, func(dir string) error {
		if err := write(dir, "freezer.state", "THAWED"); err != nil && !gone(err) {
			return fmt.Errorf("thaw: %w", err)
		}
		return nil
	})
}

// AwaitFrozen returns when all processes of the group are frozen, after a runtime has started the freeze. On v2 the kernel sends an
// event. On v1 no event exists, and each read of the state continues the freeze. So AwaitFrozen reads the state until it is FROZEN, with
// pauses in between.
func (g *Group) AwaitFrozen(ctx context.Context) error {
	if err := g.awaitFrozen(ctx); err != nil {
		return fmt.Errorf("wait until cgroup %q is frozen: %w", g.path, err)
	}
	return nil
}

func (g *Group) awaitFrozen(ctx context.Context) error {
	dir, _, v1 := g.dir("freezer")
	file, frozen := "freezer.state", "FROZEN"
	if !v1 {
		var ok bool
		if dir, ok = g.unified(); !ok {
			return fmt.Errorf("the host has neither freezer nor a unified tree: %w", errors.ErrUnsupported)
		}
		file, frozen = "cgroup.events", "frozen 1"
	}
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read from
	state := make([]byte, 256)
	for round := 0; ; round++ {
		n, err := f.ReadAt(state, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if strings.Contains("\n"+string(state[:n]), "\n"+frozen+"\n") {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if v1 {
			_ = pause(ctx, round) // the next round checks the context
			continue
		}
		// Its own event: the file's content has changed.
		events := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(events, int(frozenLimit/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// frozenLimit is the interval between checks of the context while AwaitFrozen waits for the kernel.
const frozenLimit = 100 * time.Millisecond

// killAtOnce writes to cgroup.kill, unless the calling process is in the group. The file is missing before Linux 5.14. A threaded group and a
// group of another user refuse it. Then the signals to each process do the same.
func (g *Group) killAtOnce() error {
	dir, ok := g.unified()
	if !ok {
		return nil
	}
	pids, err := procsBelow(dir)
	if err != nil || len(pids) == 0 || slices.Contains(pids, os.Getpid()) {
		return err
	}
	err = write(dir, "cgroup.kill", "1")
	if gone(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// Remove removes the group and all groups below it from every hierarchy, also groups that other programs created. It is
// idempotent. It does not kill: it waits for exiting processes until ctx is done, and then returns an error with the remaining ones.
func (g *Group) Remove(ctx context.Context) error {
	var errs []error
	for _, dir := range g.allDirs() {
		if err := removeTree(ctx, dir); err != nil {
			errs = append(errs, fmt.Errorf("remove cgroup %q: %w", g.path, err))
		}
	}
	return errors.Join(errs...)
}

// Exists reports whether the group exists in any hierarchy.
func (g *Group) Exists() bool {
	return slices.ContainsFunc(g.allDirs(), func(dir string) bool { return exists(dir, "") })
}

// ExistsInOne reports whether the group exists in the first hierarchy that processes join. That is enough if a group is created and
// removed in all hierarchies together. Each further check would cost some microseconds.
func (g *Group) ExistsInOne() bool {
	dirs := g.dirs()
	return len(dirs) > 0 && exists(dirs[0], "")
}

// Children returns the names of the groups directly below the group, in any hierarchy, in alphabetical order.
func (g *Group) Children() ([]string, error) {
	var names []string
	for _, dir := range g.allDirs() {
		entries, err := os.ReadDir(dir)
		if err != nil && !gone(err) {
			return nil, fmt.Errorf("list the groups below cgroup %q: %w", g.path, err)
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Destroy calls Kill and Remove. If the group does not exist or is empty, it needs only one call of rmdir per hierarchy.
func (g *Group) Destroy(ctx context.Context) error {
	if g.removeEmpty() {
		return nil
	}
	if err := g.Kill(ctx); err != nil {
		return err
	}
	return g.Remove(ctx)
}

// removeEmpty removes the group from each hierarchy unless it has processes or children there. It reports whether no hierarchy has the
// group any more. It makes one system call per hierarchy, because it runs within the timed deletion of a container. The runtime has
// usually removed the group already.
func (g *Group) removeEmpty() bool {
	ok := true
	for _, dir := range g.allDirs() {
		if err := unix.Rmdir(dir); err != nil && !gone(err) {
			ok = false
		}
	}
	return ok
}

func removeTree(ctx context.Context, dir string) error {
	for round := 0; ; round++ {
		err := walk(dir, func(dir string) error {
			if err := unix.Rmdir(dir); err != nil && !gone(err) {
				return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
			}
			return nil
		})
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		pids, listErr := procsBelow(dir)
		if listErr != nil {
			return listErr
		}
		if slices.Equal(pids, []int{os.Getpid()}) {
			return fmt.Errorf("%w: it contains %s; move it out first", err, describe(pids))
		}
		processes := hold(pids)
		waitErr := awaitExit(ctx, processes)
		release(processes)
		if waitErr == nil && round > 0 {
			waitErr = pause(ctx, round)
		}
		if waitErr != nil {
			return fmt.Errorf("%w: %w; still there: %s", err, waitErr, describe(pids))
		}
	}
}
