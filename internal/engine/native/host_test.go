package native_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

func TestMain(m *testing.M) {
	os.Exit(enginetest.Main(m))
}

// A program of an image reaches no process of the host, also not by Exec. The control executes the same program with the same capabilities and
// the host's processes: there it reads a file of root.
//
// Invariant image-rights.
func TestImageSeesNoProcessOfTheHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: another user has no rights to lose")
	}
	s, e := open(t)
	program := enginetest.Attacker(t, s.Rootfs)
	p, token := enginetest.HostsPrey(t, s)

	control := enginetest.RunAttack(t, p, func(args []string, out io.Writer) error {
		args = append([]string{"enter", "--root", "/", "--confine", "--", filepath.Join(s.Rootfs, program)}, args...)
		cmd := exec.CommandContext(t.Context(), s.Probe, args...)
		cmd.Stdout, cmd.Stderr = out, out
		return s.Launcher.Run(t.Context(), cmd)
	})
	for _, want := range []string{
		"read by root: " + token, "read by cwd: " + token, "read by fd: " + token, "open mem of a process of the host",
		"send a signal to a process of the host", "read shared memory: " + token, "get the semaphore of System V", "write /proc/sys/kernel/core_pattern",
	} {
		if !strings.Contains(control, "possible: "+want) {
			t.Errorf("on the host the attack does not %q; this test shows nothing. It prints\n%s", want, control)
		}
	}

	p.Walk = true
	for i, isStarted := range []bool{false, true} {
		sp := spec(s, i, probe.Ready()...)
		sp.Mounts = enginetest.Libraries(t, s.Rootfs)
		c, err := e.Create(t.Context(), sp)
		must.Do(t, err)
		t.Cleanup(func() { enginetest.Check(t, c.Delete(context.WithoutCancel(t.Context()))) })
		if isStarted {
			must.Do(t, c.Start(t.Context()))
		}
		wantNothing(t, enginetest.RunAttack(t, p, func(args []string, out io.Writer) error {
			process := engine.Process{Args: append([]string{program}, args...), Stdout: out, Stderr: out}
			_, err := c.(engine.Execer).Exec(t.Context(), process)
			return err
		}))
	}
	wantNothing(t, enginetest.RunAttack(t, p, func(args []string, out io.Writer) error {
		sp := spec(s, 3, append([]string{program}, args...)...)
		sp.Mounts, sp.Process.Stdout, sp.Process.Stderr = enginetest.Libraries(t, s.Rootfs), out, out
		c := enginetest.Running(t, e, sp)
		if _, err := c.Wait(t.Context()); err != nil {
			return err
		}
		return c.Delete(t.Context()) // the output is whole
	}))
}

func wantNothing(t *testing.T, output string) {
	t.Helper()
	if output != "done\n" {
		t.Errorf("the attack prints\n%s", output)
	}
}

// A program of Exec sees the first process, and its orphans end with the first process.
func TestExecSharesTheProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: another user's Exec has namespaces of its own")
	}
	rootfs, _ := enginetest.Workload(t)
	s, e := open(t)
	sp := spec(s, 1, probe.Ready()...)
	sp.Rootfs = rootfs
	c := enginetest.Running(t, e, sp)
	var out bytes.Buffer
	script := "/bin/busybox sleep 1000 >/dev/null 2>&1 & /bin/busybox readlink /proc/1/exe"
	exit, err := c.(engine.Execer).Exec(t.Context(), engine.Process{Args: []string{"/bin/busybox", "sh", "-c", script}, Stdout: &out})
	if err != nil || !exit.OK() || out.String() != probe.Path+"\n" {
		t.Errorf("the first process is %q, %v, %v; want %s", out.String(), exit, err, probe.Path)
	}
	if pids := processes(t, s, c); len(pids) != 2 {
		t.Errorf("the processes are %v, want the first one and the orphan", pids)
	}
	enginetest.Check(t, c.Kill(t.Context(), syscall.SIGKILL))
	if _, err := c.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if pids := processes(t, s, c); len(pids) > 0 {
		t.Errorf("after the exit of the first process the processes are %v, want none", pids)
	}
}
