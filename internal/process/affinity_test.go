package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// allowed returns the CPU list in a /proc/PID/status file.
func allowed(status string) string {
	for line := range strings.Lines(status) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	return ""
}

// affinities returns the CPUs of each thread of this program.
func affinities(t *testing.T) map[int]string {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d threads: %v", len(files), err)
	}
	found := map[int]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		thread, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		found[thread] = allowed(string(text))
	}
	return found
}

// makeThreads makes the Go runtime create threads, and returns how many it has locked at once.
func makeThreads(n int) {
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	ready.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}

// childrensCPUs returns the CPUs of one child of Spawn and one child of Call.
func childrensCPUs(t *testing.T, l *Launcher) []string {
	t.Helper()
	var spawned strings.Builder
	cmd := exec.Command("/bin/cat", "/proc/self/status")
	cmd.Stdout = &spawned
	if err := l.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if _, err := l.Call(t.Context(), Program{Args: []string{"/bin/cat", "/proc/self/status"}, Stdout: out, Stderr: out}); err != nil {
		t.Fatal(err)
	}
	called, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return []string{allowed(spawned.String()), allowed(string(called))}
}

// usualList returns the CPUs that the tests were started on.
func usualList(t *testing.T) cpuset.Set {
	t.Helper()
	usual, err := usualAffinity()
	if err != nil {
		t.Fatal(err)
	}
	var list cpuset.Set
	for cpu := range cpuset.Max + 1 {
		if usual.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

func TestPin(t *testing.T) {
	usual := usualList(t)
	if len(usual) < 2 {
		t.Skip("needs two CPUs")
	}
	one := strconv.Itoa(usual[len(usual)-1])
	t.Cleanup(func() {
		if err := Pin(""); err != nil {
			t.Error(err)
		}
	})
	for _, pinFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("before there is a launcher: %t", pinFirst), func(t *testing.T) {
			makeThreads(8)
			if pinFirst {
				if err := Pin(one); err != nil {
					t.Fatal(err)
				}
			}
			l, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}()
			if !pinFirst {
				if err := Pin(one); err != nil {
					t.Fatal(err)
				}
			}
			before := len(affinities(t))
			makeThreads(before + 8)
			var thread int // the forking thread
			if err := l.doSoon(func() error { thread = unix.Gettid(); return nil }); err != nil {
				t.Fatal(err)
			}
			now := affinities(t)
			if len(now) <= before {
				t.Errorf("no new threads, still %d", len(now))
			}
			for id, cpus := range now {
				if want := one; id == thread {
					if cpus != usual.String() {
						t.Errorf("the forking thread is on CPUs %s, want %s", cpus, usual)
					}
				} else if cpus != want {
					t.Errorf("thread %d of %d is on CPUs %s, want %s", id, len(now), cpus, want)
				}
			}
			for _, cpus := range childrensCPUs(t, l) {
				if cpus != usual.String() {
					t.Errorf("a child is on CPUs %s, want %s", cpus, usual)
				}
			}
			if err := Pin(""); err != nil {
				t.Fatal(err)
			}
			for id, cpus := range affinities(t) {
				if cpus != usual.String() {
					t.Errorf("after a reset thread %d is on CPUs %s, want %s", id, cpus, usual)
				}
			}
		})
	}
}

func TestPinRefuses(t *testing.T) {
	usual := usualList(t)
	before := affinities(t)
	for cpus, want := range map[string]string{
		"1-":                                    `pin this program to CPUs "1-": "1-" is not a CPU or a range of CPUs`,
		strconv.Itoa(cpuset.Max):                "invalid argument",
		usual.String() + ",8000,8100-" + "8191": "not all of them are available to this program",
	} {
		if err := Pin(cpus); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Pin(%q) = %v, want %s", cpus, err, want)
		}
	}
	if err := Pin(""); err != nil {
		t.Fatal(err)
	}
	for id, cpus := range affinities(t) {
		if was, ok := before[id]; ok && cpus != was {
			t.Errorf("thread %d is on CPUs %s, was on %s", id, cpus, was)
		}
	}
}
