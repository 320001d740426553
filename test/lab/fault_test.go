package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// small returns a machine for fault tests and its image. It has another architecture than the usual host, so KVM is not tried.
func small(t *testing.T) (*Lab, Machine, Image) {
	t.Helper()
	built(t)
	l, m := open(t), ARM()
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	unchanged(t, image)
	// A boot creates its temporary files here, and must remove them.
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	})
	return l, m, image
}

// unchanged checks at the end of the test that the image has not changed.
func unchanged(t *testing.T, image Image) {
	t.Helper()
	state := func() (state string) {
		for _, file := range []string{image.Kernel, image.Disk} {
			info, err := os.Stat(file)
			must.Do(t, err)
			state += fmt.Sprintln(file, info.Size(), info.ModTime())
		}
		return state
	}
	baseline := state()
	t.Cleanup(func() {
		if end := state(); end != baseline {
			t.Errorf("the image changed from\n%sto\n%s", baseline, end)
		}
	})
}

// waitExit waits until a process has exited, and at most two minutes.
func waitExit(t *testing.T, qemu *os.Process) {
	t.Helper()
	fd, err := unix.PidfdOpen(qemu.Pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	must.Do(t, err)
	defer func() { _ = unix.Close(fd) }()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 120_000); n != 1 || err != nil {
		t.Errorf("QEMU, process %d, is still running: %d, %v", qemu.Pid, n, err)
	}
}

// slowBoot is enough for a machine without KVM on a busy computer to come up.
const slowBoot = 2 * time.Minute

// TestFaults checks for each fault that Boot returns in time, that the error has the cause and the end of the console output, and that
// nothing is left.
func TestFaults(t *testing.T) {
	cells.Need(t, "lab/faults")
	l, m, image := small(t)
	work := job.Job{Steps: []job.Step{{Name: "wait", Args: []string{"sleep", "1000"}, Limit: time.Hour}}}
	for _, tt := range []struct {
		name    string
		options Options
		want    []string // texts in the error, which includes console output
		kill    string   // kill QEMU when this text appears on the console
	}{
		{"panics", Options{kernel: []string{"rdinit=/no-such-program", "root=/dev/none"}}, []string{"the report is missing", "its kernel panicked", "VFS: Unable to mount root fs"}, ""},
		{"does not start", Options{BootLimit: 2 * time.Second, qemu: []string{"-S"}}, []string{"still booting after 2s", "(nothing)"}, ""},
		{"hangs at boot", Options{BootLimit: slowBoot, kernel: []string{"loglevel=7", "rdinit=/no-such-program", "root=/dev/none", "rootwait"}}, []string{"still booting after " + slowBoot.String(), "Waiting for root device"}, ""},
		{"does not end", Options{Limit: slowBoot}, []string{"still running after " + slowBoot.String(), job.Prefix + "step wait"}, ""},
		{"is killed", Options{}, []string{"killed by signal 9", job.Prefix + "step wait"}, "step wait"},
		{"has wrong arguments", Options{qemu: []string{"-no-such-option"}}, []string{"exit code 1", "-no-such-option"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var qemu *os.Process
			l := &Lab{Launcher: l.Launcher, Guest: l.Guest}
			l.Progress = func(step string) {
				if t.Log(step); tt.kill != "" && strings.Contains(step, tt.kill) {
					if err := qemu.Kill(); err != nil {
						t.Error(err)
					}
				}
			}
			tt.options.Out, tt.options.began = t.TempDir(), func(p *os.Process) { qemu = p }
			report, err := l.Boot(t.Context(), m, image, work, nil, tt.options)
			if boot := (*BootError)(nil); !errors.As(err, &boot) || boot.Machine != m.Name {
				t.Fatalf("%+v, %v; want a *BootError", report, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %q in it", err, want)
				}
			}
			text, readErr := os.ReadFile(filepath.Join(tt.options.Out, ConsoleLog))
			last := string(text[bytes.LastIndexByte(text, '\n')+1:])
			if readErr != nil || !strings.HasSuffix(err.Error(), last) {
				t.Errorf("%v; want the last line of the console output in it: %q, %v", err, last, readErr)
			}
			waitExit(t, qemu)
		})
	}
}

// TestFullDisk checks that a full disk fails the step that fills it and no other one, and that the output arrives.
func TestFullDisk(t *testing.T) {
	cells.Need(t, "lab/faults")
	l, m, image := small(t)
	out := t.TempDir()
	report, err := l.Boot(t.Context(), m, image, job.Job{Steps: []job.Step{
		{Name: "reserve", Args: []string{"fallocate", "--length=1T", "/root/reserve"}, Limit: time.Minute}, // fills most of the disk quickly
		{Name: "fill", Args: []string{"cp", "/dev/zero", "/root/zero"}, Limit: time.Minute},
		{Name: "after", Args: []string{"uname", "-m"}, Stdout: "machine", Limit: time.Minute},
		{Name: "slow", Args: []string{"sleep", "1000"}, Limit: time.Second},
		{Name: "missing", Args: []string{"no-such-program"}, Limit: time.Minute},
		{Name: "ordinary", Args: []string{"touch", "/root/mine", "/tmp/theirs"}, User: "user", Limit: time.Minute},
	}}, nil, Options{Out: out})
	must.Do(t, err)
	for name, want := range map[string]string{
		"reserve":  "exit code 1: fallocate: fallocate failed: No space left on device",
		"fill":     "exit code 1: cp: error writing '/root/zero': No space left on device",
		"after":    "exit code 0",
		"slow":     "exit code -1 killed after its limit of 1s",
		"missing":  `exit code -1 exec: "no-such-program": executable file not found in $PATH`,
		"ordinary": "exit code 1: touch: cannot touch '/root/mine': Permission denied",
	} {
		step := report.Step(name)
		if step == nil {
			t.Errorf("step %s is missing", name)
			continue
		}
		got := fmt.Sprintf("exit code %d %s: %s", step.Code, step.Error, step.Output)
		if got = strings.Trim(strings.ReplaceAll(got, " : ", ": "), ": \n"); got != want {
			t.Errorf("step %s: %s, want %s", name, got, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(out, "machine")); err != nil || string(text) != "aarch64\n" {
		t.Errorf("the machine is %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(out, ConsoleLog)); err != nil || !strings.Contains(string(text), job.Prefix+"step ordinary") {
		t.Errorf("the console output is %q, %v", text, err)
	}
	if want := []string{"file /root/reserve", "file /root/zero", "file /tmp/theirs"}; strings.Join(report.Left, ",") != strings.Join(want, ",") {
		t.Errorf("left is %q, want %q", report.Left, want)
	}
}

// victimVariable is set in the process that TestMachineDiesWithItsProgram kills.
const victimVariable = "TOUCHSTONE_TEST_LAB_VICTIM"

// TestVictim is a helper process, not a test of its own.
func TestVictim(t *testing.T) {
	if os.Getenv(victimVariable) == "" {
		t.Skip("run by TestMachineDiesWithItsProgram")
	}
	l, m := open(t), ARM()
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	_, err = l.Boot(t.Context(), m, image, job.Job{}, nil, Options{Out: t.TempDir(), qemu: []string{"-S"}, began: func(p *os.Process) {
		if _, err := fmt.Println("qemu", p.Pid); err != nil {
			t.Error(err)
		}
	}})
	t.Error(err)
}

// QEMU must be killed when the program that booted the machine is killed.
func TestMachineDiesWithItsProgram(t *testing.T) {
	cells.Need(t, "lab/faults")
	built(t)
	self, err := os.Executable()
	must.Do(t, err)
	// The test has no launcher, because it would reap the victim.
	victim := exec.CommandContext(t.Context(), self, "-test.run=^TestVictim$", "-test.timeout=1m")
	victim.Env = append(os.Environ(), victimVariable+"=yes", "TMPDIR="+t.TempDir())
	stdout, err := victim.StdoutPipe()
	must.Do(t, err)
	must.Do(t, victim.Start())
	var pid int
	line := make([]byte, 100)
	n, err := stdout.Read(line)
	if _, scanErr := fmt.Sscanf(string(bytes.TrimSpace(line[:n])), "qemu %d", &pid); err != nil || scanErr != nil {
		t.Fatalf("the victim printed %q, %v, %v", line[:n], err, scanErr)
	}
	must.Do(t, victim.Process.Signal(syscall.SIGKILL))
	_ = victim.Wait() // it was killed
	waitExit(t, &os.Process{Pid: pid})
}
