package workdir_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// helper is an environment variable with a run ID. It makes the test binary a process that executes this run.
const helper = "TOUCHSTONE_TEST_RUN"

func TestMain(m *testing.M) {
	if id := os.Getenv(helper); id != "" {
		os.Exit(live(id, workdir.Roots{State: os.Args[1], Data: os.Args[2]}))
	}
	os.Exit(m.Run())
}

// live creates a run, waits for the end of its input and exits without removing the run.
func live(id string, roots workdir.Roots) int {
	if _, err := workdir.Create(roots, id); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("living")
	_, _ = io.ReadAll(os.Stdin)
	return 0
}

func newRoots(t *testing.T) workdir.Roots {
	t.Helper()
	dir := t.TempDir()
	return workdir.Roots{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data")}
}

// newID returns a unique ID: cgroups of the host are named after it.
func newID() string { return workdir.NewRunID(time.Now()) }

// other starts a process that executes a run. It returns the function that ends the process as a crash does.
func other(t *testing.T, roots workdir.Roots, id string) (crash func()) {
	t.Helper()
	self, err := os.Executable()
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), self, roots.State, roots.Data)
	cmd.Env = append(os.Environ(), helper+"="+id)
	return begin(t, cmd, "living")
}

func dead(t *testing.T, roots workdir.Roots, id string) {
	t.Helper()
	for _, dir := range []string{filepath.Join(roots.State, id, "oci"), filepath.Join(roots.Data, id, "t1")} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	for _, file := range []string{filepath.Join(roots.State, id, "lock"), filepath.Join(roots.Data, id, "t1", "file")} {
		write(t, file)
	}
}

// newDead returns temporary roots with the directories of a killed run.
func newDead(t *testing.T) (roots workdir.Roots, id string) {
	t.Helper()
	roots, id = newRoots(t), newID()
	dead(t, roots, id)
	return roots, id
}

func write(t *testing.T, file string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte("x"), 0o600))
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

func sweep(t *testing.T, roots workdir.Roots, groups *cgroup.Hierarchy) []workdir.Swept {
	t.Helper()
	sweeps, err := workdir.Sweep(t.Context(), roots, groups, workdir.Daemons{})
	if err != nil {
		t.Fatalf("Sweep: %v", err)
	}
	return sweeps
}

func root(t *testing.T, reason string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: " + reason)
	}
}

func groups(t *testing.T) *cgroup.Hierarchy {
	t.Helper()
	h, err := cgroup.Detect("/")
	must.Do(t, err)
	if h.Base() == "" {
		t.Skip("needs permission to create cgroups: run as root, or in a delegated cgroup")
	}
	return h
}

// newGroup creates the cgroup of a run, with a waiting process in it.
func newGroup(t *testing.T, h *cgroup.Hierarchy, id string) (process *exec.Cmd) {
	t.Helper()
	name := "/" + engine.Prefix + id
	g, err := h.Create(name + "/t1/host")
	must.Do(t, err)
	t.Cleanup(func() {
		top, err := h.Open(name)
		must.Do(t, err)
		must.Do(t, top.Destroy(context.WithoutCancel(t.Context())))
	})
	process = wait(t, nil)
	for _, file := range g.ProcsFiles() {
		must.Do(t, os.WriteFile(file, fmt.Append(nil, process.Process.Pid), 0))
	}
	return process
}

// wait starts a shell that waits for input that never comes. The shell ignores the further arguments.
func wait(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", "echo up; read x; :"}, args...)...)
	begin(t, cmd, "up")
	return cmd
}

// begin starts a process with an input that does not end, and waits until it prints a line. It returns the function that kills the process.
func begin(t *testing.T, cmd *exec.Cmd, want string) (kill func()) {
	t.Helper()
	hold, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = hold.Close()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != want+"\n" {
		t.Fatalf("the process prints %q, %v", line, err)
	}
	return kill
}

// killed checks whether a process was killed. It ends a process that was not.
func killed(t *testing.T, cmd *exec.Cmd, want bool) {
	t.Helper()
	if !want {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.String(); strings.Contains(got, "killed") != want {
		t.Errorf("the process %q ended: %s; want killed by the sweep: %v", cmd.Args, got, want)
	}
}
