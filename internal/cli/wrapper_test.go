package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// needRoot skips a test with containers without root and in short mode. It also skips the test without the necessary
// runtimes, unless enginetest.MustRun names them.
func needRoot(t *testing.T, runtimes ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts containers")
	}
	unsupported := func(name, reason string) error { return &engine.UnsupportedError{What: name, Reason: reason} }
	var err error
	if os.Geteuid() != 0 {
		err = unsupported("native", "it needs root")
	}
	enginetest.Require(t, "native", err)
	for _, name := range runtimes {
		var err error
		if _, lookErr := exec.LookPath(name); lookErr != nil {
			err = unsupported("oci/"+name, lookErr.Error())
		}
		enginetest.Require(t, "oci/"+name, err)
	}
}

// wrapper is a script around a runtime. It records its calls. Before the Nth call of VERB, or before each, it executes the
// hook with that name.
type wrapper struct {
	t    *testing.T
	dir  string
	path string
}

// newWrapper wraps a runtime. A program that does nothing, such as true, makes a runtime that only executes its hooks.
func newWrapper(t *testing.T, runtime string) *wrapper {
	t.Helper()
	binary, err := exec.LookPath(runtime)
	must.Do(t, err)
	w := &wrapper{t: t, dir: t.TempDir()}
	w.path = w.write("runtime", fmt.Sprintf(`#!/bin/sh
cd '%s'
echo "$@" >>calls
verb=
for arg; do
	case $last in
	--log) log=$arg ;;
	--pid-file) pidfile=$arg ;;
	esac
	case $arg in
	--version) verb=version ;;
	create | start | state | kill | delete | exec | pause | resume | update) verb=${verb:-$arg} ;;
	esac
	last=$arg
done
echo $verb >>verbs
n=$(grep -cx $verb verbs)
say() { echo '{"level":"error","msg":"'"$1"'"}' >>"$log"; }
reach() { echo >reached; }
hold() { reach; read go <go; }
if [ -e on-$verb ]; then . ./on-$verb; fi
if [ -e on-$verb-$n ]; then . ./on-$verb-$n; fi
exec %s "$@"
`, w.dir, binary))
	for _, pipe := range []string{"reached", "go"} {
		must.Do(t, syscall.Mkfifo(filepath.Join(w.dir, pipe), 0o600))
	}
	return w
}

func (w *wrapper) write(name, script string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	must.Do(w.t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

// on sets the hook of a call, such as "create" or "create-3".
func (w *wrapper) on(call, script string) { w.write("on-"+call, script+"\n") }

func (w *wrapper) off(call string) {
	w.t.Helper()
	must.Do(w.t, os.Remove(filepath.Join(w.dir, "on-"+call)))
}

// reached waits until a hook blocks (until its process is killed) or reports that it was reached. The program must not exit before.
func (w *wrapper) reached(p *program) {
	w.t.Helper()
	// A pipe that is opened for writing too supports a deadline.
	f, err := os.OpenFile(filepath.Join(w.dir, "reached"), os.O_RDWR, 0)
	must.Do(w.t, err)
	defer func() { _ = f.Close() }()
	must.Do(w.t, f.SetReadDeadline(time.Now().Add(patience)))
	go func() {
		var info unix.Siginfo
		_ = unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil) // an error is an exit too
		_ = f.SetReadDeadline(time.Now())
	}()
	if _, err := f.Read(make([]byte, 1)); err != nil {
		_ = p.cmd.Process.Kill()
		_, _ = p.ended()
		w.t.Fatalf("wait for a hook to be reached: %v: %v\n%s%s", err, p.cmd.ProcessState, p.said.String(), p.stdout.String())
	}
}

func (w *wrapper) flags(name string) []string { return []string{"--runtime", name + "=" + w.path} }

func (w *wrapper) runIDs() []string {
	w.t.Helper()
	calls, err := os.ReadFile(filepath.Join(w.dir, "calls"))
	if err != nil {
		return nil
	}
	var ids []string
	for _, m := range regexp.MustCompile(`touchstone-([0-9]{8}-[0-9]{6}-[a-z2-7]{4})-`).FindAllSubmatch(calls, -1) {
		ids = append(ids, string(m[1]))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// nothingLeft checks that the only run with calls of the wrapper has left nothing on the host.
func (w *wrapper) nothingLeft() {
	w.t.Helper()
	ids := w.runIDs()
	if len(ids) != 1 {
		w.t.Errorf("%d runs have called the runtime, want one", len(ids))
	}
	for _, id := range ids {
		nothingLeft(w.t, id)
	}
	noProcessIn(w.t, w.dir)
}

// noProcessIn checks that no process has its working directory in one of these folders. A child of a runtime that is a
// script may carry no ID of its run.
func noProcessIn(t *testing.T, dirs ...string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	must.Do(t, err)
	for _, proc := range processes {
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		if err == nil && slices.Contains(dirs, cwd) {
			cmdline, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
			t.Errorf("process %s is left in %s: %q", proc, cwd, cmdline)
		}
	}
}

// nothingLeft checks that a run has left nothing on the host.
func nothingLeft(t *testing.T, id string) {
	t.Helper()
	if left := leftovers(t, id); len(left) > 0 {
		t.Errorf("run %s has left on the host:\n%s", id, strings.Join(left, "\n"))
	}
}

// leftovers lists a run's directories, cgroups, mounts and processes on the host.
func leftovers(t *testing.T, id string) []string {
	t.Helper()
	var left []string
	roots := workdir.HostRoots()
	for _, dir := range []string{filepath.Join(roots.State, id), filepath.Join(roots.Data, id)} {
		if _, err := os.Lstat(dir); err == nil {
			left = append(left, "directory "+dir)
		}
	}
	groups, err := cgroup.Detect("/")
	must.Do(t, err)
	found, err := groups.Find(engine.Prefix + id)
	must.Do(t, err)
	for _, g := range found {
		left = append(left, "cgroup "+g)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must.Do(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, id) {
			left = append(left, "mount "+line)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	must.Do(t, err)
	for _, proc := range processes {
		cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil || len(cmdline) == 0 {
			continue // it has ended, though its parent may not know yet
		}
		group, _ := os.ReadFile(filepath.Join(proc, "cgroup"))
		if bytes.Contains(cmdline, []byte(id)) || bytes.Contains(group, []byte(id)) {
			left = append(left, fmt.Sprintf("process %s: %q", proc, cmdline))
		}
	}
	return left
}

// command executes a command and returns its output.
func command(t *testing.T, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}
