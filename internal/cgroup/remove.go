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

// Kill ends all processes of the group and the groups below it with SIGKILL and
// returns when there are none left; paused ones too. It spares the calling process,
// should one of its threads be in the group. It is bounded by ctx alone: a process that
// waits in the kernel cannot be killed until it wakes. A group that is
// not there has no processes.
//
// It uses cgroup.kill (Linux 5.14 and later) where there is a unified tree, and
// signals what remains one by one. New processes are held off meanwhile by
// the pids controller, so that a fork bomb cannot outrun it.
func (g *Group) Kill(ctx context.Context) error {
	allowForks := g.forbidForks()
	defer allowForks()
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

// killRound kills the processes that are in the group now, of which pids is a first
// list, and waits for their end.
func (g *Group) killRound(ctx context.Context, pids []int) error {
	if err := g.thaw(); err != nil {
		return err
	}
	if err := g.killAtOnce(); err != nil {
		return err
	}
	members := hold(pids)
	defer release(members)
	// An ID may have come to mean another process before it was held. What is
	// in the group now, after all are held, is what may be killed.
	now, err := g.others()
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range members {
		if slices.Contains(now, m.pid) {
			errs = append(errs, m.kill())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return awaitExit(ctx, slices.DeleteFunc(slices.Clone(members), func(m member) bool {
		return !slices.Contains(now, m.pid)
	}))
}

// others gives the processes of the group without the calling one.
func (g *Group) others() ([]int, error) {
	pids, err := g.Procs()
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() }), err
}

// forbidForks stops new processes in the group where the pids controller can,
// and gives the function that allows them again as before.
func (g *Group) forbidForks() (allow func()) {
	dir, _, ok := g.dir("pids")
	before, err := words(dir, "pids.max")
	if !ok || err != nil || len(before) != 1 {
		return func() {}
	}
	if write(dir, "pids.max", "0") != nil {
		return func() {}
	}
	return func() { _ = write(dir, "pids.max", before[0]) }
}

// thaw wakes frozen v1 groups, whose processes would not take the signal. The
// unified tree needs no such thing.
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

// AwaitFrozen returns when all processes of the group are frozen, which a runtime has asked for. On v1 a freeze goes on
// when the state is read, and nothing tells of its end: it is read until it says so, which is a few times at
// most. On v2 the kernel tells.
func (g *Group) AwaitFrozen(ctx context.Context) error {
	dir, _, v1 := g.dir("freezer")
	file, frozen := "freezer.state", "FROZEN"
	if !v1 {
		m, ok := g.h.unified()
		if !ok {
			return fmt.Errorf("freeze cgroup %q: %w", g.path, errors.ErrUnsupported)
		}
		dir, file, frozen = filepath.Join(m.Dir, g.path), "cgroup.events", "frozen 1"
	}
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return fmt.Errorf("wait until cgroup %q is frozen: %w", g.path, err)
	}
	defer func() { _ = f.Close() }() // it is only read from
	state := make([]byte, 256)
	for {
		n, err := f.ReadAt(state, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("wait until cgroup %q is frozen: %w", g.path, err)
		}
		if strings.Contains("\n"+string(state[:n]), "\n"+frozen+"\n") {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait until cgroup %q is frozen: %w", g.path, context.Cause(ctx))
		}
		if !v1 {
			// Its own event: the file's content has changed.
			events := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
			if _, err := unix.Poll(events, int(frozenLimit/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
				return fmt.Errorf("wait until cgroup %q is frozen: %w", g.path, err)
			}
		}
	}
}

// frozenLimit is how often a context is looked at while the kernel is waited for.
const frozenLimit = 100 * time.Millisecond

// killAtOnce uses cgroup.kill, unless the calling process is in the group.
func (g *Group) killAtOnce() error {
	m, ok := g.h.unified()
	if !ok {
		return nil
	}
	dir := filepath.Join(m.Dir, g.path)
	pids, err := procsBelow(dir)
	if err != nil || len(pids) == 0 || slices.Contains(pids, os.Getpid()) {
		return err
	}
	if err := write(dir, "cgroup.kill", "1"); err != nil && !gone(err) {
		return err
	}
	return nil
}

// Remove removes the group and all groups below it from every hierarchy, those that
// it did not make included. It is idempotent. It does not kill: it waits for
// processes that are about to end until ctx is done, and then says which are
// still there.
func (g *Group) Remove(ctx context.Context) error {
	var errs []error
	for _, dir := range g.dirs(func(Mount) bool { return true }) {
		if err := removeTree(ctx, dir); err != nil {
			errs = append(errs, fmt.Errorf("remove cgroup %q: %w", g.path, err))
		}
	}
	return errors.Join(errs...)
}

// Exists tells whether the group is there in any hierarchy.
func (g *Group) Exists() bool {
	return slices.ContainsFunc(g.dirs(func(Mount) bool { return true }), present)
}

// ExistsInOne tells whether the group is there in one hierarchy, which stands for all where groups come
// and go in all together. To ask each takes the kernel some microseconds.
func (g *Group) ExistsInOne() bool {
	dirs := g.dirs(Mount.joined)
	return len(dirs) > 0 && present(dirs[0])
}

func present(dir string) bool { return !errors.Is(unix.Access(dir, unix.F_OK), unix.ENOENT) }

// Destroy kills what is in the group and removes it: Kill, then Remove, unless the group
// turns out to be gone or empty at the first try.
func (g *Group) Destroy(ctx context.Context) error {
	if g.removeEmpty() {
		return nil
	}
	if err := g.Kill(ctx); err != nil {
		return err
	}
	return g.Remove(ctx)
}

// removeEmpty removes the group where it has neither processes nor groups below it, and
// tells whether it is gone from every hierarchy. It takes one system call for each, as it is done
// within the timed deletion of a container, whose runtime has mostly removed the group.
func (g *Group) removeEmpty() bool {
	removed := true
	for _, dir := range g.dirs(func(Mount) bool { return true }) {
		if err := unix.Rmdir(dir); err != nil && !gone(err) {
			removed = false
		}
	}
	return removed
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
			return fmt.Errorf("%w: it holds %s; move it out first", err, describe(pids))
		}
		members := hold(pids)
		waitErr := awaitExit(ctx, members)
		release(members)
		if waitErr == nil && round > 0 {
			waitErr = pause(ctx, round)
		}
		if waitErr != nil {
			return fmt.Errorf("%w: %w; still there: %s", err, waitErr, describe(pids))
		}
	}
}
