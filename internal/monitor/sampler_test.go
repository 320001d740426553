package monitor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// machine is a proc file system of invented processes. Their IDs are larger than any real ID.
type machine struct {
	testing.TB
	proc string
	pids []int
}

const noPID = 1 << 28

func newMachine(t testing.TB) *machine {
	m := &machine{TB: t, proc: t.TempDir()}
	m.write("meminfo", captured(t))
	m.write("self/smaps_rollup", "")
	return m
}

func (m *machine) write(name, text string) {
	m.Helper()
	file := filepath.Join(m.proc, name)
	must.Do(m, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
}

// run sets the state of a process. The CPU time is in ticks, the memory in KiB; the resident set is four pages.
func (m *machine) run(number, parent int, comm string, ticks, start, pss int) {
	m.Helper()
	pid, ppid := noPID+number, parent
	if parent > 0 {
		ppid += noPID
	}
	dir := fmt.Sprint(pid)
	m.write(dir+"/stat", fmt.Sprintf("%d (%s) S %d %s %d 0 0 20 0 1 0 %d 1 4 %s\n", pid, comm, ppid, strings.Repeat("0 ", 9)+"0", ticks, start, strings.Repeat("0 ", 28)))
	m.write(dir+"/cmdline", comm+"\x00")
	m.write(dir+"/smaps_rollup", fmt.Sprintf("%x-7fff ---p 00000000 00:00 0 [rollup]\nPss: %d kB\n", number, pss))
	if !slices.Contains(m.pids, pid) {
		m.pids = append(m.pids, pid)
	}
}

func (m *machine) exit(number int) {
	m.Helper()
	must.Do(m, os.RemoveAll(filepath.Join(m.proc, fmt.Sprint(noPID+number))))
}

// sampler returns a sampler of a daemon, process 1, with shims of the program "shim".
func (m *machine) sampler() *Sampler {
	m.Helper()
	s, err := NewSampler(Target{
		Daemons: []int{noPID + 1}, Programs: Programs{Shim: {"shim"}},
		Procs: func() ([]int, error) { return m.pids, nil },
	}, m.proc)
	must.Do(m, err)
	m.Cleanup(func() { must.Do(m, s.Close()) })
	return s
}

func (m *machine) wantCPU(s *Sampler, want map[Component]time.Duration) {
	m.Helper()
	got, err := s.CPU()
	must.Do(m, err)
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("CPU time (-want +got):\n%s", diff)
	}
}

func (m *machine) wantMemory(s *Sampler, want map[Component]int64, wantRSS bool) {
	m.Helper()
	got, rss, err := s.Memory()
	if err != nil || rss != wantRSS {
		m.Fatalf("Memory() = %v, %t, %v", got, rss, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Errorf("memory (-want +got):\n%s", diff)
	}
}

const tick = 10 * time.Millisecond

func TestSamplesOfComponents(t *testing.T) {
	m := newMachine(t)
	m.run(1, 0, "daemon", 500, 1, 1000)
	m.run(2, 1, "shim", 7, 50, 20)
	m.run(3, 2, "sleep", 1, 60, 3)
	s := m.sampler()
	m.wantCPU(s, map[Component]time.Duration{Daemon: 0, Shim: 0, Container: 0}) // the time before the trial
	m.wantMemory(s, map[Component]int64{Daemon: 1000 << 10, Shim: 20 << 10, Container: 3 << 10}, false)

	m.run(1, 0, "daemon", 510, 1, 1000)
	m.run(3, 2, "sleep", 4, 60, 3)
	m.run(4, 2, "worker", 5, 70, 2) // a new process, with all its time
	m.wantCPU(s, map[Component]time.Duration{Daemon: 10 * tick, Shim: 0, Container: 8 * tick})
	m.wantMemory(s, map[Component]int64{Daemon: 1000 << 10, Shim: 20 << 10, Container: 5 << 10}, false)

	// The ID of the third process belongs to a new one, which has used less time.
	m.run(3, 2, "sleep", 2, 90, 3)
	m.exit(4)
	m.wantCPU(s, map[Component]time.Duration{Daemon: 0, Shim: 0, Container: 2 * tick})
}

// A process may exit between the list of processes, its state and its memory.
func TestVanishedProcesses(t *testing.T) {
	m := newMachine(t)
	m.run(1, 0, "daemon", 0, 1, 1000)
	m.run(2, 1, "shim", 0, 50, 20)
	m.run(3, 2, "sleep", 0, 60, 3)
	s := m.sampler()
	m.exit(3)
	m.wantCPU(s, map[Component]time.Duration{Daemon: 0, Shim: 0})
	m.exit(2)
	m.wantMemory(s, map[Component]int64{Daemon: 1000 << 10}, false)
	m.wantCPU(s, map[Component]time.Duration{Daemon: 0})
}

func TestZombiesAreNotCounted(t *testing.T) {
	m := newMachine(t)
	m.run(1, 0, "daemon", 0, 1, 1000)
	dir := fmt.Sprint(noPID + 1)
	text, err := os.ReadFile(filepath.Join(m.proc, dir, "stat"))
	must.Do(t, err)
	m.write(dir+"/stat", strings.Replace(string(text), ") S ", ") Z ", 1))
	m.wantCPU(m.sampler(), map[Component]time.Duration{})
}

// With hidepid=2 an existing process has no files: its parts would be missing from every sum.
func TestHiddenProcesses(t *testing.T) {
	m := newMachine(t)
	m.pids = []int{os.Getppid()}
	if _, err := m.sampler().CPU(); !errors.Is(err, ErrHidden) {
		t.Errorf("CPU() = %v, want ErrHidden", err)
	}
}

func TestMemoryWithoutPSS(t *testing.T) {
	m := newMachine(t)
	m.run(1, 0, "daemon", 0, 1, 1000)
	for _, name := range []string{"self", fmt.Sprint(noPID + 1)} {
		must.Do(t, os.Remove(filepath.Join(m.proc, name, "smaps_rollup")))
	}
	s := m.sampler()
	m.wantCPU(s, map[Component]time.Duration{Daemon: 0})
	m.wantMemory(s, map[Component]int64{Daemon: 4 * int64(os.Getpagesize())}, true)
}

func TestMissingMeminfo(t *testing.T) {
	if _, err := NewSampler(Target{}, t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("NewSampler() = %v, want a missing file", err)
	}
}

func TestStatIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":          "",
		"without fields": "7 (sh) S 1\n",
		"no number":      "7 (sh) S 1 0 0 0 0 0 0 0 0 0 many 0 0 0 0 0 0 0 5 0 4 0\n",
	} {
		if got, _, err := parseMember(text); err == nil {
			t.Errorf("%s: parseMember() = %+v, want an error", name, got)
		}
	}
}

// The sampler reads real processes.
func TestSamplesOfRealProcesses(t *testing.T) {
	pids := sleepers(t, 2)
	s, err := NewSampler(Target{Procs: func() ([]int, error) { return pids, nil }}, "/proc")
	must.Do(t, err)
	host, err := s.Host()
	if err != nil || host[Used] <= 0 || host[Free] <= 0 {
		t.Errorf("Host() = %v, %v", host, err)
	}
	cpu, err := s.CPU()
	if _, has := cpu[Container]; err != nil || !has {
		t.Errorf("CPU() = %v, %v, want children of this program as containers", cpu, err)
	}
	if memory, _, err := s.Memory(); err != nil || memory[Container] < 10<<10 || memory[Container] > 64<<20 {
		t.Errorf("Memory() = %v, %v", memory, err)
	}
	must.Do(t, s.Close())
}

func sleepers(t testing.TB, n int) []int {
	t.Helper()
	var pids []int
	for range n {
		cmd := exec.CommandContext(t.Context(), "sleep", "600")
		must.Do(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		// Start returns in the middle of the exec, when the process has no command line yet.
		for text := []byte(nil); len(text) == 0; {
			var err error
			text, err = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
			must.Do(t, err)
		}
		pids = append(pids, cmd.Process.Pid)
	}
	return pids
}

// BenchmarkSample measures the cost of one sample of ten processes, by part.
func BenchmarkSample(b *testing.B) {
	pids := sleepers(b, 10)
	s, err := NewSampler(Target{Procs: func() ([]int, error) { return pids, nil }}, "/proc")
	must.Do(b, err)
	defer func() { _ = s.Close() }()
	for _, part := range []struct {
		name string
		read func() error
	}{
		{"host", func() error { _, err := s.Host(); return err }},
		{"cpu", func() error { _, err := s.CPU(); return err }},
		{"memory", func() error { _, _, err := s.Memory(); return err }},
	} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				must.Do(b, part.read())
			}
		})
	}
}
