package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// usualAffinity returns the CPUs that the program was started on. Children run on them.
var usualAffinity = sync.OnceValues(func() (unix.CPUSetDynamic, error) { return affinity(0) })

// affinity returns the CPUs of a thread; 0 is the calling thread.
func affinity(thread int) (unix.CPUSetDynamic, error) {
	set := unix.NewCPUSet(cpuset.Max + 1)
	return set, unix.SchedGetaffinityDynamic(thread, set)
}

// pinning guards forker, the ID of the forking thread, or 0. Pin holds it as well, so it cannot pin the forking thread of a
// launcher that starts at the same time.
var (
	pinning sync.Mutex
	forker  int
)

// setForker records the forking thread, and gives it the affinity for children. It must be called on that thread.
func setForker(thread int) error {
	pinning.Lock()
	defer pinning.Unlock()
	forker = thread
	affinity, err := usualAffinity()
	if err == nil {
		err = unix.SchedSetaffinityDynamic(0, affinity)
	}
	if err != nil {
		return fmt.Errorf("set the CPUs of children: %w", err)
	}
	return nil
}

// unsetForker records that the forking thread has ended.
func unsetForker() {
	pinning.Lock()
	defer pinning.Unlock()
	forker = 0
}

// Pin pins this program's own threads to CPUs in the kernel's format: "0-3,8". An empty list resets them to the CPUs that the program
// was started on. Pin does not affect children of a Launcher, whether the launcher exists already or not.
// Later threads of the Go runtime inherit the pinning. The runtime creates no thread from the forking thread, because a goroutine has
// locked that thread. After an error some threads may be pinned.
func Pin(cpus string) error {
	want, err := usualAffinity()
	if err != nil {
		return fmt.Errorf("read the CPU affinity of this program: %w", err)
	}
	if cpus != "" {
		list, err := cpuset.Parse(cpus)
		if err != nil {
			return fmt.Errorf("pin this program to CPUs %q: %w", cpus, err)
		}
		want = unix.NewCPUSet(cpuset.Max + 1)
		for _, cpu := range list {
			want.Set(cpu)
		}
	}
	pinning.Lock()
	defer pinning.Unlock()
	// A thread that is not yet pinned may create another one after the threads were listed. So list them again until all are pinned:
	// then their new threads are pinned as well.
	for {
		hasChanged, err := pinAll(want)
		if err != nil {
			return fmt.Errorf("pin this program to CPUs %q: %w", cpus, err)
		}
		if !hasChanged {
			return nil
		}
	}
}

// pinAll pins all current threads except the forking thread. It reports whether it changed any.
func pinAll(want unix.CPUSetDynamic) (hasChanged bool, err error) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		thread, err := strconv.Atoi(task.Name())
		if err != nil {
			return false, err
		}
		if thread == forker {
			continue
		}
		hasMoved, err := pinThread(thread, want)
		if err != nil && !errors.Is(err, unix.ESRCH) { // ESRCH: the thread has ended
			return false, err
		}
		hasChanged = hasChanged || hasMoved
	}
	return hasChanged, nil
}

// pinThread pins one thread, and reports whether that changed its affinity.
func pinThread(thread int, want unix.CPUSetDynamic) (hasChanged bool, err error) {
	have, err := affinity(thread)
	if err != nil || slices.Equal(have, want) {
		return false, err
	}
	if err := unix.SchedSetaffinityDynamic(thread, want); err != nil {
		return false, err
	}
	// The kernel silently drops CPUs that do not exist or that this program may not use.
	if have, err = affinity(thread); err == nil && !slices.Equal(have, want) {
		err = errors.New("not all of them are available to this program")
	}
	return true, err
}

// slack is the timer slack of this program's own threads, in nanoseconds: the longest delay of their timers.
//
// While a goroutine runs, Go's monitor thread wakes up every 20 µs, also during a fork. In a virtual machine a wake-up costs
// about as much time as there is between two, perhaps on the CPU of the measured container. It was a quarter of Touchstone's total
// overhead. The work of the monitor thread can wait for some milliseconds, and no other timer of Touchstone is finer.
const slack = 4_000_000

// usualSlack returns the timer slack that the program was started with. Children have this slack.
var usualSlack = sync.OnceValue(func() int {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || ns <= 0 {
		return 50_000 // the kernel's default
	}
	return ns
})

// setSlack sets the timer slack of all threads of this program. Their new threads inherit it, also one that starts during a pass, so setSlack
// makes passes until all have it. Missing permission is not an error: the slack only reduces overhead.
func setSlack(ns int) {
	want := strconv.Itoa(ns)
	const mostPasses = 10 // the slack of a thread with a real-time policy stays 0
	hasChanged := true
	for pass := 0; hasChanged && pass < mostPasses; pass++ {
		hasChanged = false
		tasks, _ := filepath.Glob("/proc/self/task/*")
		for _, task := range tasks {
			// /proc/self/task/*/ has no timerslack_ns, but /proc/TID has.
			file := filepath.Join("/proc", filepath.Base(task), "timerslack_ns")
			if have, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(have)) == want {
				continue
			}
			if os.WriteFile(file, []byte(want), 0) == nil {
				hasChanged = true
			}
		}
	}
}
