package engine

import (
	"fmt"
	"time"
)

// Seccomp selects the filter of system calls for all containers of a run. A filter costs time at every system call.
type Seccomp string

// The values of Seccomp.
const (
	// EnginesSeccomp is the filter that Touchstone has always used with an engine: the default filter of Docker and Podman, and none
	// with oci and over CRI.
	EnginesSeccomp Seccomp = ""
	// DefaultSeccomp is the default filter of each engine. For oci, which has no default, it is Docker's.
	DefaultSeccomp Seccomp = "default"
	// Unconfined is no filter.
	Unconfined Seccomp = "unconfined"
)

// Pods are the properties of pods over CRI. The zero value is Touchstone's choice. TouchStone (espe) had other values, because it
// left these fields of CRI unset.
type Pods struct {
	// SharePIDs gives the pod one PID namespace, with the pause container as its first process. Otherwise the container has a PID namespace of
	// its own, as with a kubelet's default.
	SharePIDs bool
	// Grace is the time between SIGTERM and SIGKILL when a container is killed, in whole seconds. 0 is SIGKILL at once.
	Grace time.Duration
}

// The names of the conditions that follow from the settings of a plan.
const (
	SeccompCondition = "seccomp"
	podPIDsCondition = "PID namespace of pods"
	graceCondition   = "grace of a kill"
)

// WithCondition returns i with a condition of all trials of the target. An empty value changes nothing.
func (i Info) WithCondition(name, value string) Info {
	if value == "" {
		return i
	}
	conditions := map[string]string{name: value}
	for n, v := range i.Conditions {
		conditions[n] = v
	}
	i.Conditions = conditions
	return i
}

// WithPods returns i with the conditions that follow from the properties of pods. Default properties have none.
func (i Info) WithPods(p Pods) Info {
	if p == (Pods{}) {
		return i
	}
	namespace := "one for each container"
	if p.SharePIDs {
		namespace = "one for the pod"
	}
	grace := "none"
	if p.Grace > 0 {
		grace = fmt.Sprintf("%v between SIGTERM and SIGKILL", p.Grace)
	}
	return i.WithCondition(podPIDsCondition, namespace).WithCondition(graceCondition, grace)
}

// MaskedPaths are the paths of /proc and /sys that a container does not see, as in the output of `runc spec`. Docker and Podman have lists of their own.
func MaskedPaths() []string {
	return []string{
		"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
		"/sys/firmware", "/proc/scsi",
	}
}

// ReadonlyPaths are the paths of /proc that a container may read only, as in the output of `runc spec`.
func ReadonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
