package monitor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// burnVariable is the CPU time in ms that a child process of this test burns, in several threads. The child prints the CPU
// time that it used, in ns.
const burnVariable = "TOUCHSTONE_TEST_BURN"

func TestMain(m *testing.M) {
	if ms, err := strconv.Atoi(os.Getenv(burnVariable)); err == nil {
		burn(time.Duration(ms) * time.Millisecond)
		fmt.Println(used().Nanoseconds())
		return
	}
	os.Exit(m.Run())
}

func burn(total time.Duration) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for used() < total {
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}

func used() time.Duration {
	var timestamp unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &timestamp); err != nil {
		panic(err)
	}
	return time.Duration(timestamp.Nano())
}

// needRoot skips the test if the kernel sends no records of processes to this user.
func needRoot(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes; -short skips it")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func begin(t *testing.T, target Target) *Account {
	t.Helper()
	if target.Procs == nil {
		target.Procs = func() ([]int, error) { return nil, nil }
	}
	a := Begin(target)
	t.Cleanup(func() { must.Do(t, errors.Join(a.Close(), a.Close())) })
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a
}

// burner describes a process that burns CPU time.
func burner(t *testing.T, ms int) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), burnVariable+"="+strconv.Itoa(ms))
	return cmd
}

// within reports whether a time is between two others, up to the scheduler's tick and 10 %.
func within(got, lo, hi time.Duration) bool {
	const exact, tick = 0.1, 0.003
	return got.Seconds() > (1-exact)*lo.Seconds()-tick && got.Seconds() < (1+exact)*hi.Seconds()+tick
}

// The CPU time of a process with several threads is counted once and completely. It lies between the process's own reading
// just before its exit and its parent's reading after the exit.
//
// Invariant cost-components.
func TestCPUOfThreads(t *testing.T) {
	needRoot(t)
	predecessor := burner(t, 5)
	must.Do(t, predecessor.Run())
	a := begin(t, Target{})
	var lo, hi time.Duration
	for range 2 {
		cmd := burner(t, 40)
		output, err := cmd.Output()
		must.Do(t, err)
		ns, err := strconv.Atoi(strings.TrimSpace(string(output)))
		must.Do(t, err)
		lo += time.Duration(ns)
		hi += cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
	}
	got, err := a.CPU()
	must.Do(t, err)
	if len(got) != 1 || !within(got[Container], lo, hi) {
		t.Errorf("CPU time by component is %v, want between %v and %v of the container", got, lo, hi)
	}
}

// A runtime that executes a copy of itself from memory has the number of a descriptor as its name.
func TestCPUOfACopyInMemory(t *testing.T) {
	needRoot(t)
	cmd := burner(t, 40)
	program, err := os.Open(cmd.Path)
	must.Do(t, err)
	defer func() { _ = program.Close() }()
	fd, err := unix.MemfdCreate("clone", 0)
	must.Do(t, err)
	clone := os.NewFile(uintptr(fd), "clone")
	defer func() { _ = clone.Close() }()
	_, err = io.Copy(clone, program)
	must.Do(t, err)
	cmd.ExtraFiles = []*os.File{clone}
	cmd.Path = "/proc/self/fd/3"
	a := begin(t, Target{})
	must.Do(t, cmd.Run())
	got, err := a.CPU()
	must.Do(t, err)
	// Between its fork and its exec the process executes the file of this test.
	if got[Runtime] == 0 || got[Container] > got[Runtime]/10 || len(got) > 2 {
		t.Errorf("CPU time by component is %v, want the runtime's", got)
	}
}

// A daemon's CPU time counts from the beginning of the account, with the programs of no other component that it calls.
func TestCPUOfADaemon(t *testing.T) {
	needRoot(t)
	const script = `i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo began; read go; "$1" >/dev/null; echo called; read end`
	shell := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", burner(t, 30).Path)
	shell.Env = burner(t, 30).Env
	in, err := shell.StdinPipe()
	must.Do(t, err)
	out, err := shell.StdoutPipe()
	must.Do(t, err)
	lines := bufio.NewScanner(out)
	must.Do(t, shell.Start())
	lines.Scan()
	a := begin(t, Target{Daemons: []int{shell.Process.Pid}})
	_, err = in.Write([]byte("\n"))
	must.Do(t, err)
	lines.Scan()
	census, err := a.Census()
	memory := census.ByComponent()
	if err != nil || len(memory) != 1 || memory[Daemon] < 4<<10 || memory[Daemon] > 64<<20 {
		t.Errorf("memory by component is %v, %v; want some KiB for the daemon", memory, err)
	}
	got, err := a.CPU()
	must.Do(t, err)
	must.Do(t, in.Close())
	if line := lines.Text(); line != "called" {
		t.Errorf("the daemon printed %q", line)
	}
	_ = shell.Wait() // the shell fails when its input ends
	if len(got) != 1 || got[Daemon] < 27*time.Millisecond {
		t.Errorf("CPU time by component is %v, want the 30 ms of the program that the daemon called", got)
	}
	// Its total includes the time before the account.
	if total := shell.ProcessState.SystemTime() + shell.ProcessState.UserTime(); got[Daemon] > total-5*time.Millisecond {
		t.Errorf("the daemon used %v since the account began, of %v in all", got[Daemon], total)
	}
}

// An overflow of the kernel's queue is detected.
func TestOverflow(t *testing.T) {
	needRoot(t)
	query, err := open(0)
	must.Do(t, err)
	events, err := open(query.family)
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, errors.Join(query.close(), events.close())) })
	if err := events.subscribe(1); err != nil { // the kernel uses its minimum instead
		t.Fatal(err)
	}
	for range 20 {
		must.Do(t, exec.CommandContext(t.Context(), "true").Run())
	}
	if got, err := events.drain(); !errors.Is(err, errOverflow) {
		t.Errorf("drain = %d records, %v; want %v", len(got), err, errOverflow)
	}
}

func TestOwn(t *testing.T) {
	// Only the mapping changes between the two calls: the heap neither grows by a collection nor shrinks, and the race detector keeps no
	// record of memory beside the heap.
	collect := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(collect) })
	debug.FreeOSMemory()
	const size = 64 << 20
	start, err := Own()
	if err != nil || start < 1<<20 {
		t.Fatalf("Own = %d, %v", start, err)
	}
	mapping, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	must.Do(t, err)
	end, err := Own()
	if growth := end - start; err != nil || growth < size-4<<20 || growth > size+16<<20 {
		t.Errorf("after %d bytes more Own has grown by %d, %v", size, growth, err)
	}
	must.Do(t, unix.Munmap(mapping))
}

// Memory does not depend on the kernel's records.
func TestMemoryWithoutRecords(t *testing.T) {
	needRoot(t)
	sleeper := exec.CommandContext(t.Context(), "cat")
	in, err := sleeper.StdinPipe()
	must.Do(t, err)
	out, err := sleeper.StdoutPipe()
	must.Do(t, err)
	must.Do(t, sleeper.Start())
	// Start returns in the middle of the exec, when the process has no command line yet.
	_, err = in.Write([]byte("x"))
	must.Do(t, err)
	_, err = out.Read(make([]byte, 1))
	must.Do(t, err)
	a := begin(t, Target{Runtimes: []string{"cat"}, Search: true, Procs: func() ([]int, error) { return []int{sleeper.Process.Pid, 1 << 30, os.Getpid()}, nil }})
	a.err = errOverflow
	census, err := a.Census()
	memory := census.ByComponent()
	if err != nil || len(memory) != 1 || memory[Runtime] == 0 {
		t.Errorf("memory by component is %v, %v; want cat's memory as the runtime's", memory, err)
	}
	if _, err := a.CPU(); !errors.Is(err, errOverflow) {
		t.Errorf("CPU: %v, want %v", err, errOverflow)
	}
	a.proc = t.TempDir()
	if _, err := a.Census(); !errors.Is(err, ErrHidden) {
		t.Errorf("census without the process in /proc: %v, want %v", err, ErrHidden)
	}
	// An old kernel.
	for _, file := range []string{"stat", "cmdline"} {
		name := filepath.Join(strconv.Itoa(sleeper.Process.Pid), file)
		text, err := os.ReadFile(filepath.Join("/proc", name))
		must.Do(t, err)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Join(a.proc, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(a.proc, name), text, 0o600)))
	}
	a.Search = false
	if census, err := a.Census(); err != nil || !census.Resident || census.Tasks != 1 || census.Memory[Runtime].PSS < memory[Runtime] {
		t.Errorf("without proportional set sizes the census is %+v, %v; want a resident set of at least %d", census, err, memory[Runtime])
	}
	must.Do(t, errors.Join(in.Close(), sleeper.Wait()))
}

// The CPU time of a process grows, and is unknown once the process has exited.
func TestSpent(t *testing.T) {
	a := Begin(Target{Procs: func() ([]int, error) { return nil, nil }})
	t.Cleanup(func() { must.Do(t, a.Close()) })
	start, err := a.Spent([]int{os.Getpid()})
	if err != nil {
		t.Skipf("the kernel's records are not available: %v", err)
	}
	sum := 0
	for i := range 300_000_000 {
		sum += i
	}
	end, err := a.Spent([]int{os.Getpid()})
	if err != nil || end <= start {
		t.Errorf("Spent = %v, then %v, %v after a loop to %d", start, end, err, sum)
	}
	if _, err := a.Spent([]int{1 << 22}); err == nil || !strings.Contains(err.Error(), "exited") {
		t.Errorf("Spent of no process: %v", err)
	}
}
