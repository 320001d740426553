package cpuset

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/thread"
)

// Access is the CPUs that a process may use.
type Access struct {
	// Allowed are the CPUs of the cpuset that holds the process, on cgroup v1 and v2.
	Allowed Set
	// Mask is the CPU affinity of the process. taskset and services narrow it.
	Mask Set
	// Isolated are CPUs that the kernel gives only on request (isolcpus).
	Isolated Set
}

// Usable returns the CPUs for the parts of a run: all CPUs of the cpuset that are in the mask or isolated. A mask has no isolated CPU by
// default. An unknown set restricts nothing.
func (a Access) Usable(online Set) Set {
	usable := online
	if len(a.Allowed) > 0 {
		usable = usable.And(a.Allowed)
	}
	if len(a.Mask) > 0 {
		usable = usable.And(append(append(Set{}, a.Mask...), a.Isolated...).sorted())
	}
	return usable
}

// ReadAccess returns the CPUs that this process may use. A thread that requests all CPUs gets the CPUs
// of the cpuset from the kernel.
func ReadAccess() (Access, error) {
	type answer struct {
		access Access
		err    error
	}
	answers := make(chan answer)
	thread.Go(func() {
		access, err := widen()
		answers <- answer{access, err}
	})
	a := <-answers
	if a.err != nil {
		return Access{}, fmt.Errorf("find the CPUs that this process may use: %w", a.err)
	}
	a.access.Isolated, _ = read("/", "isolated") // empty, or missing, without isolated CPUs
	return a.access, nil
}

// widen returns the mask of the thread, and requests all CPUs.
func widen() (Access, error) {
	mask, err := ofThread()
	if err != nil {
		return Access{}, err
	}
	cpus := unix.NewCPUSet(Max + 1)
	cpus.Fill()
	_ = unix.SchedSetaffinityDynamic(0, cpus) // if a sandbox forbids the call, the mask alone counts
	set, err := ofThread()
	return Access{Allowed: set, Mask: mask}, err
}

// ofThread returns the CPUs of the calling thread.
func ofThread() (Set, error) {
	set := unix.NewCPUSet(Max + 1)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		return nil, err
	}
	var cpus Set
	for cpu := range Max + 1 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
