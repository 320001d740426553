package workdir

import (
	"bytes"
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

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// sweepLimit bounds the removal in all daemons, and then the removal of each run: a process that is blocked in the kernel cannot be killed.
const sweepLimit = 20 * time.Second

// Swept counts the removed leftovers of one dead run.
type Swept struct {
	RunID     string
	Processes int
	Cgroups   int
	Mounts    int
	// Objects are containers, sandboxes and images in daemons of the user's.
	Objects int
	Files   bool
	// Kept lists leftovers that could not be removed, with the reasons. The next sweep tries again.
	Kept []string
	// Host is another host that made the run, on a shared file system. Nothing of the run is removed.
	Host string
	// Dirs are the directories of a run of another host.
	Dirs []string
}

// Daemons are the daemons of the user's, for a sweep.
type Daemons struct {
	// Empty removes the leftovers of a run in a daemon, and returns the number of removed objects.
	Empty func(ctx context.Context, runID, engineName, address string) (count int, err error)
	// Waiting is called before a sweep waits for objects that a daemon may still make. It may be nil.
	Waiting func(reason string)
}

func (s Swept) nothing() bool {
	return s.Processes+s.Cgroups+s.Mounts+s.Objects+len(s.Kept) == 0 && !s.Files
}

func (s Swept) String() string {
	if s.Host != "" {
		return fmt.Sprintf("run %s: it belongs to host %s, where touchstone cleanup removes it if it is dead; if that host no longer exists, delete %s",
			s.RunID, s.Host, wording.Listed(s.Dirs))
	}
	var parts []string
	count := func(n int, noun string) {
		if n > 0 {
			parts = append(parts, wording.Counted(n, noun))
		}
	}
	count(s.Processes, "process")
	count(s.Cgroups, "cgroup")
	count(s.Mounts, "mount")
	count(s.Objects, "daemon object")
	if s.Files {
		parts = append(parts, "its files")
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "nothing"
	}
	for _, k := range s.Kept {
		text += "; not " + k
	}
	return fmt.Sprintf("run %s: %s", s.RunID, text)
}

// Sweep removes the leftovers of dead runs. A run is dead if this host made it and no process holds any of its locks. It
// only lists runs of other hosts, in Swept.Host. If one run cannot be removed, Sweep continues with the others and returns the errors
// joined. Objects in a daemon that does not respond are no error: they are Kept.
//
// Invariant dead-runs: The next run removes the leftovers of a killed run and nothing else: a lock in each of its directories protects a live
// run, also from a session with other roots or another host.
func Sweep(ctx context.Context, roots Roots, groups *cgroup.Hierarchy, daemons Daemons) ([]Swept, error) {
	spelling := roots
	roots, unlock, err := lockRoots(spelling)
	if err != nil {
		return nil, err
	}
	defer func() {
		unlock()
		removeRoots(spelling)
	}()
	ids, err := runsIn(roots)
	if err != nil {
		return nil, err
	}
	var sweeps []Swept
	var runs []*deadRun
	var errs []error
	for _, id := range ids {
		l, err := find(roots, id)
		switch {
		case l.alive:
		case l.host != "":
			sweeps = append(sweeps, Swept{RunID: id, Host: l.host, Dirs: l.dirs})
		case err != nil:
			errs = append(errs, err)
		default:
			runs = append(runs, &deadRun{leftovers: l, swept: Swept{RunID: id}})
		}
	}
	daemons.empty(ctx, runs)
	for _, run := range runs {
		err := run.err
		if err == nil {
			err = run.remove(ctx, groups)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove the leftovers of run %s: %w", run.id, err))
		}
		if !run.swept.nothing() { // the run may have ended meanwhile
			sweeps = append(sweeps, run.swept)
		}
	}
	slices.SortFunc(sweeps, func(a, b Swept) int { return strings.Compare(a.RunID, b.RunID) })
	return sweeps, errors.Join(errs...)
}

// deadRun is a run that a sweep removes.
type deadRun struct {
	leftovers
	swept   Swept
	daemons []*userDaemon
	err     error // of the records of daemons; the rest of the run then stays
}

// runsIn lists the runs that have a directory.
func runsIn(roots Roots) ([]string, error) {
	var ids []string
	for _, root := range roots.all() {
		entries, err := os.ReadDir(root)
		if err != nil {
			return nil, fmt.Errorf("look for leftovers of earlier runs: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() && idPattern.MatchString(e.Name()) {
				ids = append(ids, e.Name())
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// remove removes all of one run in the order of dependency: processes, cgroups, mounts, files. The files are
// removed only if the rest is removed, because a later sweep finds the rest by them. Objects in daemons are removed before.
func (r *deadRun) remove(ctx context.Context, groups *cgroup.Hierarchy) error {
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	s := &r.swept
	var errs []error
	if groups != nil {
		n, isRemoved, err := removeGroup(ctx, r.id, groups)
		s.Processes += n
		if isRemoved {
			s.Cgroups++
		}
		errs = append(errs, err)
	}
	n, err := killStray(r.dirs)
	s.Processes += n
	errs = append(errs, err)
	for _, state := range r.states {
		n, err := engine.RemoveForeign(state)
		s.Cgroups += n
		errs = append(errs, err)
	}
	s.Mounts, err = unmountBelow(r.dirs)
	if err := errors.Join(append(errs, err)...); err != nil || len(s.Kept) > 0 {
		return err
	}
	s.Files, err = removeFiles(r.dirs)
	return err
}

const (
	// daemonLimit bounds the removal in one daemon.
	daemonLimit = 10 * time.Second
	// quietTime is the time without a new object after which a daemon has no request of a killed run any more. Docker, for example, completes the
	// creation of a container although its client is dead, and does not list the container before.
	quietTime = 3 * time.Second
)

// userDaemon is a daemon of the user's that a dead run used.
type userDaemon struct {
	engine, address string
	record          string // the file that names it
	failed          bool   // it is in Swept.Kept
}

// findDaemons reads the records of the daemons that the run used.
func (r *deadRun) findDaemons() error {
	for _, state := range r.states {
		dir := filepath.Join(state, engine.DaemonsDir)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("list the daemons that the run used: %w", err)
		}
		for _, e := range entries {
			d := &userDaemon{engine: e.Name(), record: filepath.Join(dir, e.Name())}
			address, err := os.ReadFile(d.record)
			if err != nil {
				return fmt.Errorf("list the daemons that the run used: %w", err)
			}
			d.address = string(address)
			r.daemons = append(r.daemons, d)
		}
	}
	return nil
}

// keep records that objects in a daemon remain.
func (r *deadRun) keep(daemon *userDaemon, cause error) {
	daemon.failed = true
	r.swept.Kept = append(r.swept.Kept, fmt.Sprintf("its objects in %s at %s: %v", daemon.engine, daemon.address, cause))
}

// empty removes the objects of runs in the daemons that they used. It looks again until no daemon has had any for quietTime.
func (d Daemons) empty(ctx context.Context, runs []*deadRun) {
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	for _, r := range runs {
		r.err = r.findDaemons()
	}
	visit := func(do func(*deadRun, *userDaemon)) {
		for _, r := range runs {
			for _, daemon := range r.daemons {
				if !daemon.failed {
					do(r, daemon)
				}
			}
		}
	}
	for first := true; ; first = false {
		calls, count := 0, 0
		visit(func(r *deadRun, daemon *userDaemon) {
			ctx, cancel := context.WithTimeout(ctx, daemonLimit)
			defer cancel()
			n, err := d.Empty(ctx, r.id, daemon.engine, daemon.address)
			calls, count = calls+1, count+n
			r.swept.Objects += n
			if err != nil {
				r.keep(daemon, err)
			}
		})
		if calls == 0 || !first && count == 0 {
			break
		}
		if first && d.Waiting != nil {
			d.Waiting(fmt.Sprintf("waiting %v: a daemon may still complete a request of a killed run", quietTime))
		}
		pause, end := context.WithTimeout(ctx, quietTime)
		<-pause.Done()
		end()
		if ctx.Err() != nil {
			visit(func(r *deadRun, daemon *userDaemon) { r.keep(daemon, context.Cause(ctx)) })
		}
	}
	visit(func(r *deadRun, daemon *userDaemon) {
		if err := os.Remove(daemon.record); err != nil {
			r.err = errors.Join(r.err, fmt.Errorf("record the removal: %w", err))
		}
	})
}

// removeFiles removes the run's directories. The lock and the owner of each go last: the run counts as living until then.
func removeFiles(dirs []string) (isRemoved bool, err error) {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return isRemoved, fmt.Errorf("remove the run's files: %w", err)
		}
		isRemoved = true
		for _, e := range entries {
			if e.Name() == lockName || e.Name() == ownerName {
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return isRemoved, fmt.Errorf("remove the run's files: %w", err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return isRemoved, fmt.Errorf("remove the run's files: %w", err)
		}
	}
	return isRemoved, nil
}

func removeGroup(ctx context.Context, id string, groups *cgroup.Hierarchy) (processes int, isRemoved bool, err error) {
	name := engine.Prefix + id
	found, err := groups.Find(name)
	if err != nil || !slices.Contains(found, "/"+name) {
		return 0, false, err
	}
	g, err := groups.Open("/" + name)
	if err != nil {
		return 0, false, err
	}
	pids, err := g.Procs()
	if err != nil {
		return 0, false, err
	}
	return len(pids), true, g.Destroy(ctx)
}

// killStray kills processes of the run outside its cgroups: runtimes with a --root in the run's directories, and
// processes with a root file system there. Rootless runs have no cgroups.
func killStray(dirs []string) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	count := 0
	var errs []error
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !stray(pid, dirs) {
			continue
		}
		did, err := killHeld(pid, func() bool { return stray(pid, dirs) })
		if did {
			count++
		}
		errs = append(errs, err)
	}
	return count, errors.Join(errs...)
}

// killHeld kills a process if the check is true while a pidfd holds the process. Another process may get the PID meanwhile. It is never
// killed, because the signal goes to the held process. Kernels before 5.3 have no pidfds, and there a short race remains.
func killHeld(pid int, check func() bool) (isKilled bool, err error) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false, fmt.Errorf("kill process %d: %w", pid, err)
	}
	defer func() { _ = p.Release() }()
	if !check() {
		return false, nil
	}
	if err := p.Kill(); errors.Is(err, os.ErrProcessDone) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("kill process %d: %w", pid, err)
	}
	return true, nil
}

// stray reports whether a process belongs to the run with these directories.
func stray(pid int, dirs []string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	if err != nil {
		return false // it has exited, or belongs to another user
	}
	args := strings.Split(string(bytes.TrimSuffix(cmdline, []byte{0})), "\x00")
	for i, arg := range args {
		root, ok := strings.CutPrefix(arg, "--root=")
		if !ok && arg == "--root" && i+1 < len(args) {
			root, ok = args[i+1], true
		}
		if ok && below(root, dirs) {
			return true
		}
	}
	if root, err := os.Readlink(filepath.Join(proc, "root")); err == nil && below(root, dirs) {
		return true
	}
	return initOf(proc, args, dirs) || rootedIn(proc, dirs)
}

// initOf recognises the init process of a container that is created and not started: "RUNTIME init" with an open
// file of the runtime's state.
func initOf(proc string, args, dirs []string) bool {
	if len(args) != 2 || args[1] != "init" {
		return false
	}
	entries, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		file, err := os.Readlink(filepath.Join(proc, "fd", e.Name()))
		return err == nil && below(file, dirs)
	})
}

// rootedIn reports whether a process in another mount namespace has its root file system in a directory of the run.
// The directory is then the root of the process's "/" mount.
func rootedIn(proc string, dirs []string) bool {
	f, err := os.Open(filepath.Join(proc, "mountinfo"))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	mounts, err := mountinfo.GetMountsFromReader(f, mountinfo.SingleEntryFilter("/"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(mounts, func(m *mountinfo.Info) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return within(m.Root, dir) })
	})
}

// within reports whether root is below dir. root is relative to the root of its file system, and dir to /. The file system
// may be mounted below /, or / may be a part of it. So the run's ID must occur in root, and the paths before it
// must agree.
func within(root, dir string) bool {
	id := "/" + filepath.Base(dir) + "/"
	index := strings.Index(root+"/", id)
	if index < 0 {
		return false
	}
	head, parent := root[:index], filepath.Dir(dir)
	return strings.HasSuffix(head, parent) || strings.HasSuffix(parent, head)
}

// below reports whether path is one of dirs or below one of them.
func below(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+"/")
	})
}

// unmountBelow removes the mounts below dirs, the deepest first.
func unmountBelow(dirs []string) (int, error) {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return !below(m.Mountpoint, dirs), false })
	if err != nil {
		return 0, fmt.Errorf("list mounts: %w", err)
	}
	slices.SortStableFunc(mounts, func(a, b *mountinfo.Info) int { return len(b.Mountpoint) - len(a.Mountpoint) })
	var errs []error
	for _, m := range mounts {
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
		}
	}
	return len(mounts) - len(errs), errors.Join(errs...)
}
