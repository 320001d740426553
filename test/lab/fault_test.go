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

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// program puts a program for tests on PATH, as the only one.
func program(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestQEMUThatWillNotDo(t *testing.T) {
	l := open(t)
	for _, tt := range []struct {
		machine Machine
		script  string
		want    []string
	}{
		{V2(), "", []string{"qemu-system-x86_64", "install the package qemu-system-x86"}},
		{ARM(), "", []string{"qemu-system-aarch64", "install the package qemu-system-arm"}},
		{ARM(), "echo QEMU emulator version 6.2.0 '(Debian 1:6.2+dfsg-2ubuntu6)'", []string{"version 6.2", "7.0 is needed", "qemu-system-arm"}},
		{ARM(), "echo something else", []string{"does not tell its version", "something else"}},
		{ARM(), "exit 3", []string{"exit code 3"}},
		{Machine{Name: "odd", Arch: "s390x"}, "", []string{"no emulator for s390x"}},
	} {
		program(t, map[string]string{"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}[tt.machine.Arch], tt.script)
		_, buildErr := l.Build(t.Context(), tt.machine)
		_, bootErr := l.Boot(t.Context(), tt.machine, Image{}, job.Job{}, nil, Options{})
		for _, err := range []error{buildErr, bootErr} {
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s, %q: %v; want %q in it", tt.machine.Name, tt.script, err, want)
				}
			}
		}
	}
}

// small is a machine that faults are tried with, and its system: the one of another architecture, which KVM is not tried for.
func small(t *testing.T) (*Lab, Machine, Image) {
	t.Helper()
	built(t)
	l, m := open(t), ARM()
	image, err := l.Build(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	unchanged(t, image)
	// Files of a boot are made here, and must be gone.
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	})
	return l, m, image
}

// unchanged checks at the end of the test that a system is as it was.
func unchanged(t *testing.T, image Image) {
	t.Helper()
	state := func() (state string) {
		for _, file := range []string{image.Kernel, image.Disk} {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			state += fmt.Sprintln(file, info.Size(), info.ModTime())
		}
		return state
	}
	before := state()
	t.Cleanup(func() {
		if after := state(); after != before {
			t.Errorf("the system was\n%sand is\n%s", before, after)
		}
	})
}

// gone checks that a process has ended, and waits for it for a moment.
func gone(t *testing.T, qemu *os.Process) {
	t.Helper()
	fd, err := unix.PidfdOpen(qemu.Pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n != 1 || err != nil {
		t.Errorf("QEMU, process %d, still runs: %d, %v", qemu.Pid, n, err)
	}
}

// Whatever becomes of a machine, the error comes within the limit, says why, has the end of the console, and nothing is left.
func TestFaults(t *testing.T) {
	l, m, image := small(t)
	waiting := job.Job{Steps: []job.Step{{Name: "wait", Args: []string{"sleep", "1000"}, Limit: time.Hour}}}
	for _, tt := range []struct {
		name    string
		options Options
		want    []string // of the error, console included
		kill    string   // when this comes on the console
	}{
		{"panics", Options{kernel: []string{"rdinit=/no-such-program", "root=/dev/none"}}, []string{"there is no report", "its kernel panicked", "VFS: Unable to mount root fs"}, ""},
		{"does not start", Options{BootLimit: 2 * time.Second, qemu: []string{"-S"}}, []string{"it was not up within 2s", "(nothing)"}, ""},
		{"hangs at boot", Options{BootLimit: 10 * time.Second, kernel: []string{"loglevel=7", "rdinit=/no-such-program", "root=/dev/none", "rootwait"}}, []string{"it was not up within 10s", "Waiting for root device"}, ""},
		{"does not end", Options{Limit: 20 * time.Second}, []string{"it did not end within 20s", job.Prefix + "step wait"}, ""},
		{"is killed", Options{}, []string{"killed by signal 9", job.Prefix + "step wait"}, "step wait"},
		{"has wrong arguments", Options{qemu: []string{"-no-such-option"}}, []string{"exit code 1", "-no-such-option"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var qemu *os.Process
			l.Progress = func(step string) {
				if t.Log(step); tt.kill != "" && strings.Contains(step, tt.kill) {
					if err := qemu.Kill(); err != nil {
						t.Error(err)
					}
				}
			}
			tt.options.Out, tt.options.began = t.TempDir(), func(p *os.Process) { qemu = p }
			report, err := l.Boot(t.Context(), m, image, waiting, nil, tt.options)
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
				t.Errorf("what came on the console ends with %q, %v; the error should do so as well: %v", last, readErr, err)
			}
			gone(t, qemu)
		})
	}
}

// A step that fills the disk is told from one that works, and what comes out does so all the same.
func TestFullDisk(t *testing.T) {
	l, m, image := small(t)
	out := t.TempDir()
	report, err := l.Boot(t.Context(), m, image, job.Job{Steps: []job.Step{
		{Name: "reserve", Args: []string{"fallocate", "--length=1T", "/root/reserve"}, Limit: time.Minute}, // most of it, fast
		{Name: "fill", Args: []string{"cp", "/dev/zero", "/root/zero"}, Limit: time.Minute},
		{Name: "after", Args: []string{"uname", "-m"}, Stdout: "machine", Limit: time.Minute},
		{Name: "slow", Args: []string{"sleep", "1000"}, Limit: time.Second},
		{Name: "missing", Args: []string{"no-such-program"}, Limit: time.Second},
		{Name: "ordinary", Args: []string{"touch", "/root/mine", "/tmp/theirs"}, User: "user", Limit: time.Second},
	}}, nil, Options{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"reserve":  "exit code 1: fallocate: fallocate failed: No space left on device",
		"fill":     "exit code 1: cp: error writing '/root/zero': No space left on device",
		"after":    "exit code 0",
		"slow":     "exit code -1 it took longer than its limit of 1s, and was killed",
		"missing":  `exit code -1 exec: "no-such-program": executable file not found in $PATH`,
		"ordinary": "exit code 1: touch: cannot touch '/root/mine': Permission denied",
	} {
		step := report.Step(name)
		if step == nil {
			t.Errorf("there is no step %s", name)
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
		t.Errorf("what came on the console is %q, %v", text, err)
	}
	if want := []string{"file /root/reserve", "file /root/zero", "file /tmp/theirs"}; strings.Join(report.Left, ",") != strings.Join(want, ",") {
		t.Errorf("left is %q, want %q", report.Left, want)
	}
}

// victimVariable makes TestVictim the program that TestMachineEndsWithItsProgram kills.
const victimVariable = "TOUCHSTONE_TEST_LAB_VICTIM"

// TestVictim is no test by itself.
func TestVictim(t *testing.T) {
	if os.Getenv(victimVariable) == "" {
		t.Skip("run by TestMachineEndsWithItsProgram")
	}
	l, m := open(t), ARM()
	image, err := l.Build(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Boot(t.Context(), m, image, job.Job{}, nil, Options{Out: t.TempDir(), qemu: []string{"-S"}, began: func(p *os.Process) {
		if _, err := fmt.Println("qemu", p.Pid); err != nil {
			t.Error(err)
		}
	}})
	t.Error(err)
}

// When the program that boots a machine is killed, the machine goes with it.
func TestMachineEndsWithItsProgram(t *testing.T) {
	built(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// There is no launcher here, which would reap the victim.
	victim := exec.CommandContext(t.Context(), self, "-test.run=^TestVictim$", "-test.timeout=1m")
	victim.Env = append(os.Environ(), victimVariable+"=yes", "TMPDIR="+t.TempDir())
	said, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	line := make([]byte, 100)
	n, err := said.Read(line)
	if _, scanErr := fmt.Sscanf(string(bytes.TrimSpace(line[:n])), "qemu %d", &pid); err != nil || scanErr != nil {
		t.Fatalf("it said %q, %v, %v", line[:n], err, scanErr)
	}
	if err := victim.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it was killed
	gone(t, &os.Process{Pid: pid})
}
