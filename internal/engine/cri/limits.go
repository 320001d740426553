package cri

import (
	"cmp"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// limitPod limits the pod's cgroup to what its one container may use, as a kubelet does before it asks the engine for anything, and
// when it resizes a pod. With most runtimes the container's own limits say the same once more. gVisor's shim does nothing
// with these, and what holds is the pod's.
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

// merged gives the limits of a pod whose container is given new ones, of which a zero field changes nothing. CPUs are only
// added: the pause container keeps those it has, and on v1 no group has fewer than one below it.
func merged(old, update engine.Resources) engine.Resources {
	all := engine.Resources{CPU: cmp.Or(update.CPU, old.CPU), Memory: cmp.Or(update.Memory, old.Memory), CPUSet: old.CPUSet}
	if old.CPUSet != "" && update.CPUSet != "" && update.CPUSet != old.CPUSet {
		all.CPUSet += "," + update.CPUSet
	}
	return all
}

// wider gives limits within which both an old and a new set lie.
func wider(old, then engine.Resources) engine.Resources {
	return engine.Resources{CPU: more(old.CPU, then.CPU), Memory: more(old.Memory, then.Memory), CPUSet: then.CPUSet}
}

// more gives the higher of two limits, of which 0 is none.
func more[T float64 | int64](a, b T) T {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}
