package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

// usualAffinity is the CPUs on which the program was started, which are the children's.
var usualAffinity = sync.OnceValues(func() (unix.CPUSetDynamic, error) { return affinity(0) })

// affinity gives the CPUs of a thread; 0 is the calling one.
func affinity(thread int) (unix.CPUSetDynamic, error) {
	set := unix.NewCPUSet(cpuset.Max + 1)
	return set, unix.SchedGetaffinityDynamic(thread, set)
}

// pinning guards forker, the ID of the thread that forks; 0 without one. It is held while threads are pinned, so that
// a launcher that begins meanwhile has its thread as it wants it.
var (
	pinning sync.Mutex
	forker  int
)

// setForker says which thread forks, and gives it the affinity that children are to have. It is called on that thread.
func setForker(thread int) error {
	pinning.Lock()
	defer pinning.Unlock()
	forker = thread
	usual, err := usualAffinity()
	if err == nil {
		err = unix.SchedSetaffinityDynamic(0, usual)
	}
	if err != nil {
		return fmt.Errorf("set the CPUs of children: %w", err)
	}
	return nil
}

// unsetForker says that no thread forks any more.
func unsetForker() {
	pinning.Lock()
	defer pinning.Unlock()
	forker = 0
}

// Pin keeps this program's own threads on CPUs, spelled as the kernel does: "0-3,8"; with none it gives them back those on
// which the program was started. What a Launcher starts is not affected, whether that is there already or not.
// Threads of the Go runtime that begin later come from threads that are pinned, and never from that which
// forks: the runtime makes none from a thread that a goroutine has locked. An error may leave some threads pinned.
func Pin(cpus string) error {
	want, err := usualAffinity()
	if err != nil {
		return fmt.Errorf("learn the CPUs of this program: %w", err)
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
	// A thread that one not yet pinned has made since the threads were listed is found by another look. When one finds
	// all pinned, so is whatever they make.
	for {
		changed, err := pinAll(want)
		if err != nil {
			return fmt.Errorf("pin this program to CPUs %q: %w", cpus, err)
		}
		if !changed {
			return nil
		}
	}
}

// pinAll pins the threads there are, but for that which forks, and tells whether any was not pinned before.
func pinAll(want unix.CPUSetDynamic) (changed bool, err error) {
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
		moved, err := pinThread(thread, want)
		if err != nil && !errors.Is(err, unix.ESRCH) { // which has ended
			return false, err
		}
		changed = changed || moved
	}
	return changed, nil
}

// pinThread pins one thread, and tells whether it was not pinned before.
func pinThread(thread int, want unix.CPUSetDynamic) (changed bool, err error) {
	have, err := affinity(thread)
	if err != nil || slices.Equal(have, want) {
		return false, err
	}
	if err := unix.SchedSetaffinityDynamic(thread, want); err != nil {
		return false, err
	}
	// The kernel leaves CPUs out that are not there, or not for this program, and says nothing.
	if have, err = affinity(thread); err == nil && !slices.Equal(have, want) {
		err = errors.New("not all of them are there for this program")
	}
	return true, err
}
