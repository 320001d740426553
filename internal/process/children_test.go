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
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
	"github.com/touchstone-bench/touchstone/internal/must"
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
		must.Do(t, err)
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

// usualList returns the CPUs that the tests were started on.
func usualList(t *testing.T) cpuset.Set {
	t.Helper()
	affinity, err := usualAffinity()
	must.Do(t, err)
	var list cpuset.Set
	for cpu := range cpuset.Max + 1 {
		if affinity.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

func TestPin(t *testing.T) {
	affinity := usualList(t)
	if len(affinity) < 2 {
		t.Skip("needs two CPUs")
	}
	one := strconv.Itoa(affinity[len(affinity)-1])
	t.Cleanup(func() { must.Do(t, Pin("")) })
	for _, pinFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("before there is a launcher: %t", pinFirst), func(t *testing.T) {
			makeThreads(8)
			if pinFirst {
				must.Do(t, Pin(one))
			}
			l, err := New(Options{})
			must.Do(t, err)
			defer func() { must.Do(t, l.Close()) }()
			if !pinFirst {
				must.Do(t, Pin(one))
			}
			baseline := len(affinities(t))
			makeThreads(baseline + 8)
			var thread int // the forking thread
			must.Do(t, l.doSoon(func() error { thread = unix.Gettid(); return nil }))
			masks := affinities(t)
			if len(masks) <= baseline {
				t.Errorf("no new threads, still %d", len(masks))
			}
			for id, cpus := range masks {
				if want := one; id == thread {
					if cpus != affinity.String() {
						t.Errorf("the forking thread is on CPUs %s, want %s", cpus, affinity)
					}
				} else if cpus != want {
					t.Errorf("thread %d of %d is on CPUs %s, want %s", id, len(masks), cpus, want)
				}
			}
			for _, status := range readBy(t, l, "/proc/self/status") {
				if cpus := allowed(status); cpus != affinity.String() {
					t.Errorf("a child is on CPUs %s, want %s", cpus, affinity)
				}
			}
			must.Do(t, Pin(""))
			for id, cpus := range affinities(t) {
				if cpus != affinity.String() {
					t.Errorf("after a reset thread %d is on CPUs %s, want %s", id, cpus, affinity)
				}
			}
		})
	}
}

func TestPinRefuses(t *testing.T) {
	affinity := usualList(t)
	baseline := affinities(t)
	for cpus, want := range map[string]string{
		"1-":                     `pin this program to CPUs "1-": "1-" is not a CPU or a range of CPUs`,
		strconv.Itoa(cpuset.Max): "invalid argument",
		affinity.String() + ",8000,8100-" + "8191": "not all of them are available to this program",
	} {
		if err := Pin(cpus); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Pin(%q) = %v, want %s", cpus, err, want)
		}
	}
	must.Do(t, Pin(""))
	for id, cpus := range affinities(t) {
		if was, ok := baseline[id]; ok && cpus != was {
			t.Errorf("thread %d is on CPUs %s, was on %s", id, cpus, was)
		}
	}
}

func score(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	must.Do(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must.Do(t, err)
	return n
}

// readBy returns a file as a child of Run and the child of a child of Call read it.
func readBy(t *testing.T, l *Launcher, file string) []string {
	t.Helper()
	var spawned strings.Builder
	cmd := exec.CommandContext(t.Context(), "/bin/cat", file)
	cmd.Stdout = &spawned
	must.Do(t, l.Run(t.Context(), cmd))
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must.Do(t, err)
	defer func() { _ = out.Close() }()
	if exit, err := l.Call(t.Context(), Program{Args: []string{"/bin/sh", "-c", "cat " + file + "; true"}, Stdout: out, Stderr: out}); err != nil || exit.Status != 0 {
		t.Fatalf("Call() = %+v, %v", exit, err)
	}
	output, err := os.ReadFile(out.Name())
	must.Do(t, err)
	return []string{strings.TrimSpace(spawned.String()), strings.TrimSpace(string(output))}
}

// Invariant host-guard.
func TestChildrenHaveHigherOOMScore(t *testing.T) {
	self := score(t, "/proc/self/oom_score_adj")
	l, err := New(Options{})
	must.Do(t, err)
	want := min(self+oomRaise, mostOOMScore)
	// The child of a child inherits the score.
	for _, got := range readBy(t, l, "/proc/self/oom_score_adj") {
		if got != strconv.Itoa(want) || l.OOMScore() != want {
			t.Errorf("a child has OOM score %s, and OOMScore() is %d; want %d", got, l.OOMScore(), want)
		}
	}
	if err := l.Run(t.Context(), exec.Command("/does/not/exist")); err == nil {
		t.Error("a missing program started")
	}
	if got := score(t, "/proc/self/oom_score_adj"); got != self {
		t.Errorf("this program has OOM score %d, want its old one, %d", got, self)
	}
	must.Do(t, l.Close())
}

// The highest score is 1000. Without a writable score the children keep the score of this program.
func TestOOMScoreOfOthers(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		text     string
		children int
		writable bool
	}{{"0\n", 500, true}, {"-1000\n", -500, true}, {"700\n", 1000, true}, {"none\n", 0, false}} {
		file := filepath.Join(dir, "score")
		must.Do(t, os.WriteFile(file, []byte(tt.text), 0o600))
		s := openOOMScore(file)
		if s.children != tt.children || (s.file != nil) != tt.writable {
			t.Errorf("score %q: children have %d, writable is %v; want %d, %v", tt.text, s.children, s.file != nil, tt.children, tt.writable)
		}
		s.close()
	}
	if s := openOOMScore(filepath.Join(dir, "missing")); s.raise() != nil || s.lower() != nil || s.children != 0 {
		t.Errorf("a missing score gives %+v", s)
	}
}

// slacks returns the timer slack of each thread of this program, except threads that end meanwhile.
func slacks(t *testing.T) map[string]int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*")
	must.Do(t, err)
	found := map[string]int{}
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join("/proc", filepath.Base(task), "timerslack_ns"))
		if err != nil {
			continue
		}
		ns, err := strconv.Atoi(strings.TrimSpace(string(text)))
		must.Do(t, err)
		found[filepath.Base(task)] = ns
	}
	return found
}

func count(found map[string]int, want int) (n int) {
	for _, ns := range found {
		if ns == want {
			n++
		}
	}
	return n
}

// Only Touchstone's own threads may have the larger timer slack, and only while it has a launcher. Children are measured, so they
// keep the usual slack.
func TestChildrenKeepUsualTimerSlack(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: sets the timer slack of other threads")
	}
	slackTime := usualSlack()
	if slackTime == slack {
		t.Skipf("the tests were started with the timer slack of a launcher, %d ns", slackTime)
	}
	l, err := New(Options{})
	must.Do(t, err)
	for _, got := range readBy(t, l, "/proc/self/timerslack_ns") {
		if got != strconv.Itoa(slackTime) {
			t.Errorf("a child has a timer slack of %s ns, want %d", got, slackTime)
		}
	}
	if values := slacks(t); count(values, slackTime) != 1 || count(values, slack) != len(values)-1 {
		t.Errorf("timer slacks of the threads: %v; want %d ns for the forking thread and %d ns for the others", values, slackTime, slack)
	}
	must.Do(t, l.Close())
	if values := slacks(t); count(values, slackTime) != len(values) {
		t.Errorf("timer slacks of the threads after Close: %v, want %d ns", values, slackTime)
	}
}

func isSubreaper(t *testing.T) bool {
	t.Helper()
	var value int32
	must.Do(t, unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&value)), 0, 0, 0))
	return value != 0
}

// The number of remembered exits of strays is bounded.
func TestRememberedOrphansAreBounded(t *testing.T) {
	l := &Launcher{awaited: map[int]*Process{}, ended: map[int]Exit{}}
	for pid := range rememberedOrphans {
		l.ended[1<<22+pid] = Exit{}
	}
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	if err := cmd.Start(); err != nil { // not a child of the launcher, so the launcher treats it as an orphan
		t.Fatal(err)
	}
	for len(l.ended) >= rememberedOrphans {
		l.reap()
	}
	if _, ok := l.ended[cmd.Process.Pid]; !ok || len(l.ended) != 1 {
		t.Errorf("%d exits are remembered, the last among them: %v", len(l.ended), ok)
	}
	_ = cmd.Wait() // the launcher has reaped it
}

func TestFailedNewRestoresState(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a mount namespace")
	}
	if _, err := New(Options{Hide: []string{t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "unmount") {
		t.Errorf("New() = %v with an invalid mount point", err)
	}
	if isSubreaper(t) {
		t.Error("the program is still a subreaper, so unreaped orphans accumulate")
	}
}

func TestCloseRestoresState(t *testing.T) {
	for range 3 { // launchers one after the other are allowed
		l, err := New(Options{})
		must.Do(t, err)
		if !isSubreaper(t) {
			t.Error("the program is not a subreaper")
		}
		if second, err := New(Options{}); err == nil {
			t.Error("New creates a second launcher, which would reap the children of the first")
			_ = second.Close()
		}
		must.Do(t, l.Close())
		if isSubreaper(t) {
			t.Error("the program is a subreaper after Close")
		}
	}
}
