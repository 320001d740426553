package workdir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

func TestSweepRemovesDeadRuns(t *testing.T) {
	roots := newRoots(t)
	pair, state, data := newID(), newID(), newID()
	dead(t, roots, pair)
	for _, dir := range []string{filepath.Join(roots.State, state), filepath.Join(roots.Data, data)} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	want := []workdir.Swept{{RunID: pair, Files: true}, {RunID: state, Files: true}, {RunID: data, Files: true}}
	slices.SortFunc(want, func(a, b workdir.Swept) int { return strings.Compare(a.RunID, b.RunID) })
	expect.Equal(t, "swept", want, sweep(t, roots, nil))
	for _, root := range []string{roots.State, roots.Data} {
		if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left, without a run in it: %v", root, err)
		}
	}
	if sweeps := sweep(t, roots, nil); len(sweeps) > 0 {
		t.Errorf("a second sweep finds %v", sweeps)
	}
}

// Sweep ignores files with other names, and files that are not a run's directory.
func TestSweepIgnoresOtherFiles(t *testing.T) {
	roots := newRoots(t)
	neighbour := t.TempDir()
	write(t, filepath.Join(neighbour, "file"))
	const id = "20260101-000000-abcd" // with letters, so that the same in capitals is another name
	var keep []string
	for _, root := range []string{roots.State, roots.Data} {
		must.Do(t, os.MkdirAll(root, 0o700))
		for _, name := range []string{"results", id + "x", "x" + id, strings.ToUpper(id), id + ".bak", ".hidden"} {
			keep = append(keep, filepath.Join(root, name, "file"))
			must.Do(t, os.Mkdir(filepath.Join(root, name), 0o700))
			write(t, keep[len(keep)-1])
		}
		file, link := filepath.Join(root, newID()), filepath.Join(root, newID())
		write(t, file)
		must.Do(t, os.Symlink(neighbour, link))
		keep = append(keep, file, link)
	}
	// A run's directory may hold a link to another directory.
	dead(t, roots, id)
	must.Do(t, os.Symlink(neighbour, filepath.Join(roots.Data, id, "t1", "link")))
	expect.Equal(t, "swept", []workdir.Swept{{RunID: id, Files: true}}, sweep(t, roots, nil))
	for _, path := range append(keep, filepath.Join(neighbour, "file")) {
		if !exists(t, path) {
			t.Errorf("%s was removed", path)
		}
	}
}

// Cgroups and directories of other programs that the run has recorded are removed if they are empty.
func TestSweepOfForeignDirs(t *testing.T) {
	roots, id, hierarchy := newRoots(t), newID(), t.TempDir()
	dead(t, roots, id)
	s := engine.Session{State: filepath.Join(roots.State, id), Cgroups: &cgroup.Hierarchy{Mounts: []cgroup.Mount{{Dir: hierarchy}}}}
	must.Do(t, s.RecordForeignCgroups("vc"))
	opt := filepath.Join(t.TempDir(), "opt")
	must.Do(t, s.RecordForeignDirs(opt))
	for _, dir := range []string{filepath.Join(hierarchy, "vc"), opt} {
		must.Do(t, os.Mkdir(dir, 0o700))
	}
	expect.Equal(t, "swept", []workdir.Swept{{RunID: id, Cgroups: 1, Files: true}}, sweep(t, roots, nil))
	if exists(t, filepath.Join(hierarchy, "vc")) {
		t.Error("the cgroup is left")
	}
	if exists(t, opt) {
		t.Error("the directory is left")
	}
}

func TestSweepIgnoresLivingRun(t *testing.T) {
	roots, id, deadID := newRoots(t), newID(), newID()
	crash := other(t, roots, id)
	dead(t, roots, deadID)
	expect.Equal(t, fmt.Sprintf("swept while %s lives", id), []workdir.Swept{{RunID: deadID, Files: true}}, sweep(t, roots, nil))
	if _, err := workdir.Create(roots, id); err == nil {
		t.Error("Create took over the run of another process")
	}
	crash()
	expect.Equal(t, "swept after the exit of its process", []workdir.Swept{{RunID: id, Files: true}}, sweep(t, roots, nil))
}

func TestSweepOfMounts(t *testing.T) {
	root(t, "makes mounts")
	for _, hasLinks := range []bool{false, true} {
		t.Run(fmt.Sprint("linked ", hasLinks), func(t *testing.T) {
			roots, id := newDead(t)
			real := roots
			if hasLinks { // the mount table has paths without links
				roots.Data = filepath.Join(t.TempDir(), "link")
				must.Do(t, os.Symlink(real.Data, roots.Data))
			}
			neighbour := t.TempDir()
			write(t, filepath.Join(neighbour, "precious"))
			data := filepath.Join(real.Data, id)
			for _, m := range []struct{ source, target, kind string }{
				{neighbour, filepath.Join(data, "t1"), ""},
				{"touchstone-test", filepath.Join(data, "a b"), "tmpfs"},
				{"touchstone-test", filepath.Join(data, "a b"), "tmpfs"}, // one above the other
				{neighbour, filepath.Join(data, "a b", "deep"), ""},
			} {
				flags := uintptr(0)
				if m.kind == "" {
					flags = syscall.MS_BIND
				}
				must.Do(t, os.MkdirAll(m.target, 0o700))
				must.Do(t, syscall.Mount(m.source, m.target, m.kind, flags, ""))
				t.Cleanup(func() { _ = syscall.Unmount(m.target, syscall.MNT_DETACH) })
			}
			want := []workdir.Swept{{RunID: id, Mounts: 4, Files: true}}
			expect.Equal(t, "swept", want, sweep(t, roots, nil))
			if !exists(t, filepath.Join(neighbour, "precious")) {
				t.Error("a file was deleted through a mount")
			}
			if exists(t, data) {
				t.Error("the directory is left")
			}
		})
	}
}

func TestSweepOfCgroups(t *testing.T) {
	h := groups(t)
	roots, id, strayID := newRoots(t), newID(), newID()
	dead(t, roots, id)
	process := newGroup(t, h, id)
	// A run with its directories elsewhere is not swept, dead or alive.
	stranger := newGroup(t, h, strayID)
	want := []workdir.Swept{{RunID: id, Processes: 1, Cgroups: 1, Files: true}}
	expect.Equal(t, "swept", want, sweep(t, roots, h))
	killed(t, process, true)
	killed(t, stranger, false)
	if found, err := h.Find(engine.Prefix + id); err != nil || len(found) > 0 {
		t.Errorf("the remaining cgroups are %v, %v", found, err)
	}
	if found, err := h.Find(engine.Prefix + strayID); err != nil || len(found) != 1 {
		t.Errorf("the cgroups of the run elsewhere are %v, %v", found, err)
	}
}

// Without cgroups, arguments identify a run's processes.
func TestSweepOfProcesses(t *testing.T) {
	roots, id := newDead(t)
	state := filepath.Join(roots.State, id)
	mine := []*exec.Cmd{
		wait(t, []string{"runtime", "--root=" + state + "/oci/0/root", "create"}),
		wait(t, []string{"runtime", "--log", "x", "--root", state + "/oci/0/root"}),
		wait(t, []string{"runtime", "--root=" + filepath.Join(roots.Data, id)}),
	}
	survivors := []*exec.Cmd{
		wait(t, []string{"runtime", "--root=" + state + "x/oci/0/root"}),
		wait(t, []string{"runtime", "--root=" + filepath.Join(roots.State, newID(), "oci")}),
		wait(t, []string{"runtime", "--root=/run/runc", "run"}),
		wait(t, []string{"runtime", "--roots=" + state, "--root"}),
		wait(t, []string{state, "--log=" + state, "init"}),
	}
	want := []workdir.Swept{{RunID: id, Processes: len(mine), Files: true}}
	expect.Equal(t, "swept", want, sweep(t, roots, nil))
	haveEnded(t, mine, survivors)
}

func haveEnded(t *testing.T, mine, survivors []*exec.Cmd) {
	t.Helper()
	for _, p := range mine {
		killed(t, p, true)
	}
	for _, p := range survivors {
		killed(t, p, false)
	}
}

// The root file system identifies a container's process. Open files of the runtime identify the init process of a
// container that is not started.
func TestSweepOfContainerProcesses(t *testing.T) {
	root(t, "changes the root file system")
	roots, id := newDead(t)
	rootfs := filepath.Join(roots.Data, id, "rootfs")
	must.Do(t, image.WriteRootfs(t.Context(), rootfs))
	strayRoot := filepath.Join(t.TempDir(), "rootfs")
	must.Do(t, image.WriteRootfs(t.Context(), strayRoot))
	probe := func(root string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "/probe", "ready")
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		cmd.Dir = "/"
		begin(t, cmd, "ready")
		return cmd
	}
	// "sh init": a shell whose script waits, with a file of the runtime open.
	script := filepath.Join(t.TempDir(), "init")
	must.Do(t, os.WriteFile(script, []byte("echo up; read x; :\n"), 0o600))
	initOf := func(file string) *exec.Cmd {
		f, err := os.Open(file)
		must.Do(t, err)
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "init")
		cmd.Dir, cmd.ExtraFiles = filepath.Dir(script), []*os.File{f}
		begin(t, cmd, "up")
		_ = f.Close()
		return cmd
	}
	mine := []*exec.Cmd{probe(rootfs), initOf(filepath.Join(roots.State, id, "oci"))}
	survivors := []*exec.Cmd{probe(strayRoot), initOf(strayRoot)}
	want := []workdir.Swept{{RunID: id, Processes: len(mine), Files: true}}
	expect.Equal(t, "swept", want, sweep(t, roots, nil))
	haveEnded(t, mine, survivors)
}

func TestSweptString(t *testing.T) {
	for want, sweeps := range map[string]workdir.Swept{
		"run a: its files": {RunID: "a", Files: true},
		"run a: 1 process, 1 cgroup, 1 mount, its files": {RunID: "a", Processes: 1, Cgroups: 1, Mounts: 1, Files: true},
		"run a: 2 processes, 3 cgroups, 4 mounts":        {RunID: "a", Processes: 2, Cgroups: 3, Mounts: 4},
	} {
		if got := sweeps.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

// Sweep removes the objects of a killed run from daemons of the user's. If a daemon does not respond, the run's directories
// stay, and the next sweep tries again.
func TestSweepOfDaemons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // Sweep waits between its looks at the daemons
		roots, id := newDead(t)
		recordDaemons(t, roots, id, map[string]string{"containerd": "/run/c.sock", "docker": "unix:///run/d.sock"})
		const containerd, docker = " containerd /run/c.sock", " docker unix:///run/d.sock"
		var calls []string
		answers := true
		ask := func(ctx context.Context, runID, name, address string) (int, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the removal has no deadline")
			}
			call := runID + " " + name + " " + address
			repeat := slices.Contains(calls, call)
			calls = append(calls, call)
			switch {
			case name == "docker" && !answers:
				return 1, errors.New("no response")
			case repeat:
				return 0, nil
			}
			return 2, nil
		}
		sweepAsking := func() []workdir.Swept {
			t.Helper()
			calls = nil
			sweeps, err := workdir.Sweep(t.Context(), roots, nil, workdir.Daemons{Empty: ask})
			if err != nil {
				t.Error(err)
			}
			return sweeps
		}
		answers = false
		remains := []string{"its objects in docker at unix:///run/d.sock: no response"}
		expect.Equal(t, "swept", []workdir.Swept{{RunID: id, Objects: 3, Kept: remains}}, sweepAsking())
		expect.Equal(t, "called", []string{id + containerd, id + docker, id + containerd}, calls)
		answers = true
		sweeps := sweepAsking()
		expect.Equal(t, "swept the second time", []workdir.Swept{{RunID: id, Objects: 2, Files: true}}, sweeps)
		expect.Equal(t, "called the second time", []string{id + docker, id + docker}, calls)
		if got, want := sweeps[0].String(), "run "+id+": 2 daemon objects, its files"; got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	})
}

// A daemon completes requests of a run after the death of its process, and lists their objects only then. The looks at several runs have
// their waits in common.
func TestSweepOfLateObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots := newRoots(t)
		lateID, done := newID(), newID()
		appears := map[string][]time.Duration{ // the ages of the sweep at which objects appear
			lateID: {0, time.Second, 5 * time.Second}, done: {0},
		}
		for id := range appears {
			dead(t, roots, id)
			recordDaemons(t, roots, id, map[string]string{"docker": "/run/d.sock"})
		}
		start := time.Now()
		var waits []string
		sweeps, err := workdir.Sweep(t.Context(), roots, nil, workdir.Daemons{
			Empty: func(_ context.Context, id, _, _ string) (n int, _ error) {
				for len(appears[id]) > 0 && appears[id][0] <= time.Since(start) {
					appears[id] = appears[id][1:]
					n++
				}
				return n, nil
			},
			Waiting: func(reason string) { waits = append(waits, reason) },
		})
		must.Do(t, err)
		expect.Equal(t, "messages", []string{"waiting 3s: a daemon may still complete a request of a killed run"}, waits)
		want := []workdir.Swept{{RunID: lateID, Objects: 3, Files: true}, {RunID: done, Objects: 1, Files: true}}
		slices.SortFunc(want, func(a, b workdir.Swept) int { return strings.Compare(a.RunID, b.RunID) })
		expect.Equal(t, "swept", want, sweeps)
		if took := time.Since(start); took != 9*time.Second {
			t.Errorf("the sweep took %v, want 3 waits of 3s", took)
		}
	})
}

// A sweep that is interrupted while it waits for late objects keeps the records of the daemons for the next one.
func TestSweepInterruptedInWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roots, id := newDead(t)
		recordDaemons(t, roots, id, map[string]string{"docker": "/run/d.sock"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ask := func(context.Context, string, string, string) (int, error) { return 1, nil }
		sweeps, err := workdir.Sweep(ctx, roots, nil, workdir.Daemons{Empty: ask})
		must.Do(t, err)
		want := []workdir.Swept{{RunID: id, Objects: 1, Kept: []string{"its objects in docker at /run/d.sock: context deadline exceeded"}}}
		expect.Equal(t, "swept", want, sweeps)
		if !exists(t, filepath.Join(roots.State, id, engine.DaemonsDir, "docker")) {
			t.Error("the record of the daemon is gone")
		}
	})
}

// Daemons that do not answer take no time from the removal of processes and cgroups.
func TestSweepBesideHangingDaemons(t *testing.T) {
	h := groups(t)
	id := newID()
	process := newGroup(t, h, id)
	synctest.Test(t, func(t *testing.T) {
		roots := newRoots(t)
		dead(t, roots, id)
		addresses := map[string]string{"containerd": "/run/c.sock", "crio": "/run/o.sock", "docker": "/run/d.sock"}
		recordDaemons(t, roots, id, addresses)
		hang := func(ctx context.Context, _, _, _ string) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		sweeps, err := workdir.Sweep(t.Context(), roots, h, workdir.Daemons{Empty: hang})
		must.Do(t, err)
		if len(sweeps) != 1 || sweeps[0].Processes != 1 || sweeps[0].Cgroups != 1 || len(sweeps[0].Kept) != len(addresses) {
			t.Errorf("swept %+v, want the process, the cgroup, and %d daemons that are kept", sweeps, len(addresses))
		}
	})
	killed(t, process, true)
}

// recordDaemons records the addresses of the user's daemons that a run has used.
func recordDaemons(t *testing.T, roots workdir.Roots, id string, addresses map[string]string) {
	t.Helper()
	run := engine.Session{RunID: id, State: filepath.Join(roots.State, id)}
	for name, address := range addresses {
		must.Do(t, run.RecordDaemon(name, address))
	}
}
