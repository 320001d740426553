package tune

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// realKernel is a tuner of this machine's own /proc and /sys, with its record in a directory of the test.
func realKernel(t *testing.T) *Tuner {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"proc", "sys"} {
		must.Do(t, os.Symlink("/"+dir, filepath.Join(root, dir)))
	}
	tuner := New(root)
	tuner.signal = signalDaemon
	return tuner
}

// TestRealProcess pauses a real process with the name irqbalance, and continues it.
func TestRealProcess(t *testing.T) {
	tuner := realKernel(t)
	if daemons, err := tuner.daemons(); err != nil || len(daemons) > 0 {
		t.Skipf("the machine has irqbalance itself, or hides its processes: %v, %v", daemons, err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("needs sleep")
	}
	named(t, sleep, irqbalance, nil)
	for { // the kernel names a process a moment after its start
		if daemons, err := tuner.daemons(); err != nil || len(daemons) > 0 {
			break
		}
		runtime.Gosched()
	}
	state := func() string {
		daemons, err := tuner.daemons()
		if err != nil || len(daemons) != 1 {
			t.Fatalf("the processes are %v, %v", daemons, err)
		}
		return daemons[0].state
	}
	if got := statuses(mustTune(t, tuner, irqbalance)); len(got) != 1 || state() != stopped {
		t.Errorf("after tune it is %s, and the outcomes are %v", state(), got)
	}
	for _, o := range mustRestore(t, tuner, false) {
		if o.Status != Restored || state() != running {
			t.Errorf("after restore it is %s, and the outcome is %+v", state(), o)
		}
	}
}

// named starts a copy of a program with another name.
func named(t *testing.T, program, name string, user *syscall.Credential) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(file, text, 0o755)
	}
	// Another user may pass the directory, and the directory above it is the test's too.
	must.Do(t, err, os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
	cmd := exec.CommandContext(t.Context(), file, "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// TestRealForeignProcess: no signal reaches a process with the PID of the record that is not irqbalance of root.
//
// Invariant host-tune-attack.
func TestRealForeignProcess(t *testing.T) {
	realKernel(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("needs sleep")
	}
	kernel := host{machine.At("/")}
	for what, c := range map[string]struct {
		name string
		user *syscall.Credential
		late bool
		want string
	}{
		"another user's":  {irqbalance, &syscall.Credential{Uid: 65534, Gid: 65534}, false, "belongs to another user"},
		"another program": {"other", nil, false, "executes"},
		"a later process": {irqbalance, nil, true, errGone.Error()},
	} {
		if c.user != nil && os.Geteuid() != 0 {
			continue
		}
		pid := strconv.Itoa(named(t, sleep, c.name, c.user).Process.Pid)
		d, ok := kernel.process(pid)
		if !ok {
			t.Fatalf("%s: no process %s", what, pid)
		}
		key := pid + "@" + d.start
		if c.late {
			key = pid + "@1"
		}
		if err := signalDaemon(key, unix.SIGSTOP); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", what, err, c.want)
		}
		if d, _ := kernel.process(pid); d.state != running {
			t.Errorf("%s: the process is %s", what, d.state)
		}
		daemons, err := kernel.daemons()
		for _, d := range daemons {
			if d.pid == pid && c.user != nil {
				t.Errorf("%s: it is listed", what)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestRealKSM stops the merging of pages on this machine and starts it again. Few programs have pages for it.
func TestRealKSM(t *testing.T) {
	const run = "/" + machine.KSM + "run"
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("changes a setting of the machine, as root and not with -short")
	}
	original, err := os.ReadFile(run)
	if err != nil {
		t.Skipf("the kernel has no KSM: %v", err)
	}
	tuner := realKernel(t)
	t.Cleanup(func() { must.Do(t, tuner.write(machine.KSM+"run", strings.TrimSpace(string(original)))) })
	if err := tuner.write(machine.KSM+"run", "1"); err != nil {
		t.Skipf("this machine refuses to start KSM: %v", err)
	}
	value := func() string {
		text, err := os.ReadFile(run)
		must.Do(t, err)
		return strings.TrimSpace(string(text))
	}
	if mustTune(t, tuner, "ksm"); value() != "0" {
		t.Errorf("after tune KSM is %s", value())
	}
	if mustRestore(t, tuner, false); value() != "1" {
		t.Errorf("after restore KSM is %s", value())
	}
}

// A real kernel refuses to change the name of the system, which stands here for the governor of a virtual kernel.
func TestRealRefusal(t *testing.T) {
	root := newUntuned(t)
	path := filepath.Join(root, hosttest.Governor)
	must.Do(t, errors.Join(os.Remove(path), os.Symlink("/proc/sys/kernel/ostype", path)))
	got := mustTune(t, New(root), "governor")
	i := slices.IndexFunc(got, func(o Outcome) bool { return o.Key == hosttest.Governor })
	if i < 0 || got[i].Status != Refused || !strings.Contains(got[i].Reason, "permission denied") {
		t.Errorf("the outcomes are %+v", got)
	}
	if got := statuses(got); got["governor "+hosttest.CPUs+"cpufreq/policy1/scaling_governor"] != Changed {
		t.Errorf("the other value is not changed: %v", got)
	}
}
