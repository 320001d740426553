package enginetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// The functions in this file check what faults of a private daemon do.

// DaemonDies checks that a daemon that is killed fails the trial with the reason, and that it is restarted once, for the next trial. left lists what
// the containers of the daemon leave after their removal. It is nil if only the runner, which empties the cgroup of the trial, removes them.
func DaemonDies(t *testing.T, s engine.Session, e engine.Engine, left func() []string) {
	t.Helper()
	var baseline []string
	if left != nil {
		baseline = left()
	}
	begin := func(name string) (engine.Container, error) { // as a trial begins
		if err := e.(engine.CgroupPlacer).SetCgroupParent(s.Cgroup()); err != nil {
			return nil, err
		}
		return e.Create(t.Context(), Spec(s, name))
	}
	for _, name := range []string{"one", "two"} {
		c, err := begin(name)
		if err != nil {
			t.Fatalf("Create of container %s: %v", name, err)
		}
		must.Do(t, c.Start(t.Context()))
		service := e.(engine.DaemonBacked).Daemon()
		if len(service.PIDs) == 0 || service.Cgroup == nil {
			t.Fatalf("the private daemon is reported as %+v", service)
		}
		exit := make(chan error, 1)
		go func() {
			_, err := c.Wait(t.Context())
			exit <- err
		}()
		Check(t, unix.Kill(service.PIDs[0], unix.SIGKILL))
		if err := <-exit; err == nil {
			t.Error("Wait works although the daemon has died")
		}
		err = c.Delete(t.Context())
		if text := fmt.Sprint(err); !strings.Contains(text, "killed by signal 9") || !strings.Contains(text, "the end of its log") {
			t.Errorf("Delete without a daemon: %v; want how it ended, and the end of its log", err)
		}
		if left != nil {
			Check(t, c.Delete(t.Context()))
			wantNoMore(t, baseline, left)
		}
		if group, err := s.Cgroups.Open(s.Cgroup()); err != nil {
			t.Error(err)
		} else {
			Check(t, group.Kill(limited(t)))
		}
	}
	if _, err := begin("three"); err == nil || !strings.Contains(err.Error(), "restarted once before") {
		t.Errorf("Create after the second death: %v", err)
	}
}

// wantNoMore fails the test if left lists more than baseline.
func wantNoMore(t *testing.T, baseline []string, left func() []string) {
	t.Helper()
	for _, l := range Surplus(baseline, left()) {
		t.Errorf("%s is left", l)
	}
}

// DaemonHangs checks that a daemon that does not answer after a timeout is killed and started once more, that the next container works, and that
// nothing is left.
func DaemonHangs(t *testing.T, s engine.Session, e engine.Engine, left func() []string) {
	t.Helper()
	baseline := left()
	recoverer := e.(engine.Recoverer)
	if isKilled, err := recoverer.Recover(t.Context()); isKilled || err != nil {
		t.Fatalf("Recover of a daemon that works: %v, %v", isKilled, err)
	}
	one, err := e.Create(t.Context(), Spec(s, "one"))
	must.Do(t, err)
	Hang(t, e)
	if isKilled, err := recoverer.Recover(t.Context()); !isKilled || err != nil {
		t.Fatalf("Recover of a stopped daemon: %v, %v", isKilled, err)
	}
	Check(t, one.Delete(t.Context()))
	Check(t, Running(t, e, Spec(s, "two")).Delete(t.Context()))
	wantNoMore(t, baseline, left)
}

// DaemonFails checks that a daemon that does not start refuses all targets with the end of its log, and is tried once for all. program is its
// name in Session.Engines.
func DaemonFails(t *testing.T, d Opener, name string, s engine.Session, program string) {
	t.Helper()
	dir := t.TempDir()
	script, starts := filepath.Join(dir, program), filepath.Join(dir, "starts")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && echo " + program + " example 2.0.0 && exit\necho started >>" + starts + "\necho no luck today >&2\nexit 3\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	s.Engines = map[string]string{program: script}
	for range 2 {
		_, err := d.Open(t.Context(), Parse(t, name), s)
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), "exit code 3") || !strings.Contains(err.Error(), "no luck today") {
			t.Errorf("Open: %v; want a refusal with how the daemon ended and the end of its log", err)
		}
	}
	if text, err := os.ReadFile(starts); err != nil || string(text) != "started\n" {
		t.Errorf("the daemon was started %q times, %v; want once", text, err)
	}
}

// SmallDisk mounts a disk for Session.Data that is too small for the image of DiskFull. It precedes the session, whose launcher may keep the mounts
// that it finds.
func SmallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("needs the right to mount: ", err)
	}
	t.Cleanup(func() { Check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// DiskFull checks that an image without space on the disk fails its pull with the reason, and that it can be removed.
func DiskFull(t *testing.T, s engine.Session, e engine.Engine) {
	t.Helper()
	ref, err := s.Registry.Fresh(t.Context(), 32<<20)
	must.Do(t, err)
	p := e.(engine.Puller)
	if err := p.Pull(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), ref) {
		t.Errorf("Pull: %v; want an error with the full disk and the image", err)
	}
	Check(t, p.RemoveImage(t.Context(), ref))
}

// Namesakes checks that the removal of a container leaves one of another engine alone that has the same name.
func Namesakes(t *testing.T, mine, theirEngine engine.Engine, spec engine.Spec) {
	t.Helper()
	a, b := Running(t, mine, spec), Running(t, theirEngine, spec)
	Check(t, a.Delete(t.Context()))
	if state, err := b.State(t.Context()); err != nil || state != engine.Running {
		t.Errorf("the other container is %s, %v; want it as it was, running", state, err)
	}
}

// HostState describes what a run must not change on the host: its mounts, the content of files, and the entries of directories.
func HostState(t *testing.T, files, dirs []string) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, file := range append([]string{"/proc/self/mountinfo"}, files...) {
		text, err := os.ReadFile(file)
		state[file] = fmt.Sprint(string(text), err)
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		state[dir] = fmt.Sprint(err)
		for _, e := range entries {
			if info, err := e.Info(); err == nil { // otherwise another program has removed it
				state[dir] += fmt.Sprintln(e.Name(), info.ModTime())
			}
		}
	}
	return state
}

// WantSameState compares two states of the host.
func WantSameState(t *testing.T, baseline, state map[string]string) {
	t.Helper()
	for what, is := range state {
		if is != baseline[what] {
			t.Errorf("%s is\n%s\nafter the run, and was\n%s", what, is, baseline[what])
		}
	}
}
