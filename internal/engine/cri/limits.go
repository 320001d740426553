package cri

import (
	"cmp"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// limitPod sets the limits of the pod's cgroup to the limits of its one container. A kubelet does so before its first request,
// and when it resizes a pod. With most runtimes the container's own limits repeat them. gVisor's shim ignores the
// container's limits, and only the pod's hold.
func (c *container) limitPod(r engine.Resources) error {
	if c.group == nil || r == c.limits {
		return nil
	}
	if r.CPU != c.limits.CPU || r.Memory != c.limits.Memory {
		if err := c.group.Limit(cgroup.Limits{CPU: r.CPU, Memory: r.Memory}); err != nil {
			return err
		}
	}
	if r.CPUSet != c.limits.CPUSet {
		if _, err := c.group.SetCPUs(r.CPUSet); err != nil {
			return err
		}
	}
	c.limits = r
	return nil
}

// merged returns the limits of a pod after an update of its container. A zero field of the update changes nothing. CPUs are
// only added: the pause container keeps its CPUs, and on v1 a cgroup has at least the CPUs of its children.
func merged(old, update engine.Resources) engine.Resources {
	all := engine.Resources{CPU: cmp.Or(update.CPU, old.CPU), Memory: cmp.Or(update.Memory, old.Memory), CPUSet: old.CPUSet}
	if old.CPUSet != "" && update.CPUSet != "" && update.CPUSet != old.CPUSet {
		all.CPUSet += "," + update.CPUSet
	}
	return all
}

// wider returns limits that allow both the old and the new ones.
func wider(old, then engine.Resources) engine.Resources {
	return engine.Resources{CPU: more(old.CPU, then.CPU), Memory: more(old.Memory, then.Memory), CPUSet: then.CPUSet}
}

// more returns the higher of two limits. 0 means unlimited.
func more[T float64 | int64](a, b T) T {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}
