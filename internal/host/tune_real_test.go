package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// realKernel is a tuner of this machine's own /proc and /sys, with its record in a directory of the test.
func realKernel(t *testing.T) *Tuner {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"proc", "sys"} {
		if err := os.Symlink("/"+dir, filepath.Join(root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	tuner := NewTuner(root)
	tuner.signal = unix.Kill
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
	cmd := exec.CommandContext(t.Context(), sleep, "1000")
	link := filepath.Join(t.TempDir(), irqbalance)
	if err := os.Symlink(sleep, link); err != nil {
		t.Fatal(err)
	}
	cmd.Path = link // the kernel names a process after the file of its execve
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
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

// TestRealKSM stops the merging of pages on this machine and starts it again. Few programs have pages for it.
func TestRealKSM(t *testing.T) {
	const run = "/" + ksmDir + "run"
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("changes a setting of the machine, as root and not with -short")
	}
	before, err := os.ReadFile(run)
	if err != nil {
		t.Skipf("the kernel has no KSM: %v", err)
	}
	tuner := realKernel(t)
	t.Cleanup(func() {
		if err := tuner.write(ksmDir+"run", strings.TrimSpace(string(before))); err != nil {
			t.Error(err)
		}
	})
	if err := tuner.write(ksmDir+"run", "1"); err != nil {
		t.Skipf("this machine refuses to start KSM: %v", err)
	}
	value := func() string {
		text, err := os.ReadFile(run)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	if mustTune(t, tuner, "ksm"); value() != "0" {
		t.Errorf("after tune KSM is %s", value())
	}
	if mustRestore(t, tuner, false); value() != "1" {
		t.Errorf("after restore KSM is %s", value())
	}
}

// A real kernel refuses to change the name of the system, which stands here for the governor of a virtual machine.
func TestRealRefusal(t *testing.T) {
	root := newUntuned(t)
	path := filepath.Join(root, policy0)
	if err := errors.Join(os.Remove(path), os.Symlink("/proc/sys/kernel/ostype", path)); err != nil {
		t.Fatal(err)
	}
	got := mustTune(t, NewTuner(root), "governor")
	i := slices.IndexFunc(got, func(o Outcome) bool { return o.Key == policy0 })
	if i < 0 || got[i].Status != Refused || !strings.Contains(got[i].Reason, "permission denied") {
		t.Errorf("the outcomes are %+v", got)
	}
	if got := statuses(got); got["governor "+cpuDir+"cpufreq/policy1/scaling_governor"] != Changed {
		t.Errorf("the other value is not changed: %v", got)
	}
}
