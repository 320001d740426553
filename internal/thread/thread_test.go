package thread

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

//nolint:gochecknoinits // only the initialization of packages runs on the main thread for certain
func init() { runtime.LockOSThread() }

// onMain are the thread of a function that the main thread calls, and the main thread's number of CPUs before and after.
var onMain struct{ thread, before, after int }

func TestMain(m *testing.M) {
	onMain.before = cpus()
	call(func() {
		onMain.thread = unix.Gettid()
		narrow()
	})
	onMain.after = cpus()
	runtime.UnlockOSThread()
	os.Exit(m.Run())
}

func cpus() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		panic(err)
	}
	return set.Count()
}

// narrow leaves one CPU to the calling thread.
func narrow() {
	var set, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		panic(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if set.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		panic(err)
	}
}

func TestMainThreadKeepsItsState(t *testing.T) {
	if onMain.thread == os.Getpid() || onMain.after != onMain.before {
		t.Errorf("f ran on thread %d of process %d, whose main thread has %d CPUs, before %d", onMain.thread, os.Getpid(), onMain.after, onMain.before)
	}
}

// No later goroutine gets the thread of f.
func TestThreadEnds(t *testing.T) {
	threads := make(chan int)
	Go(func() { threads <- unix.Gettid() })
	first := <-threads
	for {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", first))
		if os.IsNotExist(err) {
			return
		}
		must.Do(t, err)
		if unix.Gettid() == first {
			t.Fatalf("the thread %d has another goroutine", first)
		}
		runtime.Gosched()
	}
}
