package trace

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/thread"
	"github.com/touchstone-bench/touchstone/test/record"
)

// A storm of processes is counted to the last one.
//
// Invariant trace-counts.
func TestForkStorm(t *testing.T) {
	const count = 1000
	got := traced(t, fmt.Sprintf("i=0; while [ $i -lt %d ]; do (:) & i=$((i+1)); done; wait", count))
	// unshare becomes the shell, which makes the processes. Each of them exits, and the shell does.
	if got["new process"] != count || got["exit_group"] != count+1 {
		t.Errorf("%d new processes and %d exits, want %d and one more", got["new process"], got["exit_group"], count)
	}
}

// A fork bomb with more programs than the tracer has places for gives no counts, and the next trace is whole again.
//
// Invariant trace-counts.
func TestTooManyPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it executes thousands of programs")
	}
	tracer := start(t, monitor.Target{})
	places := int(tracer.objects.Programs.MaxEntries())
	run(t, fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done", places+1))
	counts, err := tracer.Stop()
	if counts != nil || err == nil || !strings.Contains(err.Error(), "events are missing from the trace") {
		t.Errorf("after %d programs: %d counts, %v", places+1, len(counts), err)
	}
	if got := traced(t, "/bin/true; :"); got["program true"] != 1 {
		t.Errorf("the next trace has %v", got)
	}
}

// A program keeps its component when it gives itself the name of another one, and so do its children.
func TestFalseNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runtime")
	must.Do(t, os.WriteFile(file, []byte("#!/bin/sh\nprintf shim >/proc/$$/comm\nread name </proc/$$/comm\n[ \"$name\" = shim ]\n/bin/true\n"), 0o700)) //nolint:gosec // a program
	tracer := start(t, monitor.Target{Programs: monitor.Programs{monitor.Runtime: {"runtime"}, monitor.Shim: {"shim"}}})
	must.Do(t, exec.CommandContext(t.Context(), "sh", "-c", "set -e; . "+file+"; exec "+file).Run())
	counts, err := tracer.Stop()
	must.Do(t, err)
	got := map[string]map[string]int64{}
	for _, c := range counts {
		got[c.Component] = c.Programs
	}
	want := map[string]map[string]int64{"container": {"sh": 1, "true": 1}, "runtime": {"runtime": 1, "true": 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the programs by component (-want +got):\n%s", diff)
	}
}

// reuseVariable makes the test program a process that makes others with given IDs.
const reuseVariable = "TOUCHSTONE_TEST_REUSE"

// reused is the number of calls of getuid that a process with a reused ID makes.
const reused = 7

// A process of a stranger is not observed, also if it has the ID of a traced process that has exited.
func TestReusedID(t *testing.T) {
	if os.Getenv(reuseVariable) != "" {
		var pid int32
		_, err := fmt.Scan(&pid)
		must.Do(t, err)
		must.Do(t, cloneWithID(pid))
		return
	}
	self, err := os.Executable()
	must.Do(t, err)
	stranger := exec.CommandContext(t.Context(), self, "-test.run=^TestReusedID$")
	stranger.Env = append(os.Environ(), reuseVariable+"=1")
	in, err := stranger.StdinPipe()
	must.Do(t, err, stranger.Start()) // before the trace, so that it is none of its processes
	tracer := start(t, monitor.Target{})
	victim := exec.CommandContext(t.Context(), "true")
	must.Do(t, victim.Run())
	_, err = fmt.Fprintln(in, victim.Process.Pid)
	must.Do(t, err)
	if err := stranger.Wait(); err != nil {
		record.Skip(t, fmt.Sprintf("the kernel gives no process the ID %d again: %v", victim.Process.Pid, err))
	}
	counts, err := tracer.Stop()
	must.Do(t, err)
	if got := total(counts); got["program true"] != 1 || got["getuid"] >= reused || got["new process"] != 0 {
		t.Errorf("the trace has calls or children of a stranger with a reused ID: %v", got)
	}
}

// cloneWithID makes a process with an ID. It makes some calls and a child, and exits.
func cloneWithID(pid int32) error {
	args := struct {
		flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls uint64
		setTID                                                               unsafe.Pointer
		setTIDSize                                                           uint64
	}{exitSignal: uint64(unix.SIGCHLD), setTID: unsafe.Pointer(&pid), setTIDSize: 1}
	child, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	if errno != 0 {
		return errno
	}
	if child == 0 { // with one thread, and without the runtime of Go
		for range reused {
			_, _, _ = unix.RawSyscall(unix.SYS_GETUID, 0, 0, 0)
		}
		_, _, _ = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0) // a child, which exits too
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(int(child), &status, 0, nil); err != nil {
		return err
	}
	if int32(child) != pid || status.ExitStatus() != 0 {
		return fmt.Errorf("process %d ended with %v", child, status)
	}
	return nil
}

// stepVariable makes the test program a tracer that waits after a step of its life.
const stepVariable = "TOUCHSTONE_TEST_STEP"

// A tracer that is killed in any step of its life leaves nothing in the kernel.
//
// Invariant trace-removed.
func TestKilledTracer(t *testing.T) {
	life := []struct {
		name string
		do   func(t *testing.T, tracer *Tracer)
	}{
		{"started", func(*testing.T, *Tracer) {}},
		{"in a step", func(t *testing.T, tracer *Tracer) { must.Do(t, tracer.Step("create")) }},
		{"counted", func(t *testing.T, _ *Tracer) { run(t, "/bin/true; :") }},
		{"detached", func(t *testing.T, tracer *Tracer) { must.Do(t, tracer.detach()) }},
	}
	if last := os.Getenv(stepVariable); last != "" {
		tracer := start(t, monitor.Target{})
		for _, p := range tracer.loaded() {
			info, err := p.Info()
			must.Do(t, err)
			id, _ := info.ID()
			fmt.Println("program", id)
		}
		for _, step := range life {
			step.do(t, tracer)
			if step.name == last {
				fmt.Println("waits")
				_, _ = io.Copy(io.Discard, os.Stdin)
			}
		}
		return
	}
	_ = start(t, monitor.Target{}).close() // skips the test on a machine that cannot trace
	self, err := os.Executable()
	must.Do(t, err)
	for _, step := range life {
		t.Run(step.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestKilledTracer$")
			cmd.Env = append(os.Environ(), stepVariable+"="+step.name)
			in, err := cmd.StdinPipe()
			must.Do(t, err)
			defer func() { _ = in.Close() }()
			out, err := cmd.StdoutPipe()
			must.Do(t, err, cmd.Start())
			var ids []ebpf.ProgramID
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "waits" {
				if number, ok := strings.CutPrefix(lines.Text(), "program "); ok {
					id, err := strconv.ParseUint(number, 10, 32)
					must.Do(t, err)
					ids = append(ids, ebpf.ProgramID(id))
				}
			}
			must.Do(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			if len(ids) == 0 || lines.Text() != "waits" {
				t.Fatalf("the tracer ended early, with the programs %v", ids)
			}
			awaitRemoval(ids)
		})
	}
}

// A thread with CAP_BPF and CAP_PERFMON alone can trace, at any value of perf_event_paranoid: the tracer opens no perf event.
func TestTwoCapabilities(t *testing.T) {
	_ = start(t, monitor.Target{}).close() // skips the test on a machine that cannot trace
	value, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	must.Do(t, err)
	done := make(chan error, 2)
	thread.Go(func() {
		const first = 32 // of the second word
		data := [2]unix.CapUserData{1: {Effective: 1<<(unix.CAP_BPF-first) | 1<<(unix.CAP_PERFMON-first)}}
		data[1].Permitted = data[1].Effective
		done <- unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
		done <- Check()
	})
	must.Do(t, <-done)
	if err := <-done; err != nil {
		t.Errorf("with two capabilities, and perf_event_paranoid %s: %v", strings.TrimSpace(string(value)), err)
	}
}
