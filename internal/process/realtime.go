package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// policies are the names of the real-time policies of the scheduler.
var policies = map[uint32]string{unix.SCHED_FIFO: "SCHED_FIFO", unix.SCHED_RR: "SCHED_RR", unix.SCHED_DEADLINE: "SCHED_DEADLINE"}

// joinError adds the cause to the kernel's refusal to let the forking thread join a cgroup.
func joinError(cgroup string, err error) error {
	if r := realTimeRefusal(cgroup, err, policy()); r != nil {
		return r
	}
	return fmt.Errorf("move into cgroup: %w", err)
}

// forkError adds the cause to the kernel's refusal to make a child in a cgroup.
func forkError(cgroup string, err error) error {
	if r := realTimeRefusal(cgroup, err, policy()); r != nil {
		return r
	}
	return err
}

// policy is the policy of the calling thread, which its children inherit.
func policy() uint32 {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return unix.SCHED_NORMAL
	}
	return attr.Policy
}

// IsRealTime reports whether the calling thread has a real-time policy, which its children inherit.
func IsRealTime() bool { return policies[policy()] != "" }

// realTimeRefusal returns the refusal of a cgroup for a process with a real-time policy; nil for another error. A kernel with
// CONFIG_RT_GROUP_SCHED gives a new cgroup no time for such processes, and answers EINVAL.
func realTimeRefusal(cgroup string, err error, policy uint32) error {
	name, realTime := policies[policy]
	if !realTime || !errors.Is(err, unix.EINVAL) {
		return nil
	}
	return &refusal.Error{
		What: "move into cgroup " + cgroup, Err: unix.EINVAL,
		Cause:  "Touchstone has the real-time policy " + name + ", and this kernel gives new cgroups no real-time budget (CONFIG_RT_GROUP_SCHED)",
		Remedy: "start Touchstone without it (chrt --other 0 touchstone …), or boot with rt_group_sched=0 if the kernel knows it",
	}
}
