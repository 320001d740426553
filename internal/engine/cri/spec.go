package cri

import (
	"cmp"
	"path/filepath"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/locality"
)

// The labels of all objects of a run.
const (
	runLabel = engine.Label
	idLabel  = "touchstone.id"
)

// namespace is the Kubernetes namespace of the pods.
const namespace = "touchstone"

// logName is a container's log in its directory.
const logName = "log"

// unconfined is the profile of all targets: engines bring different filters, and each filter costs time at every system
// call. A plan may select the engine's default filter for seccomp.
var unconfined = &api.SecurityProfile{ProfileType: api.SecurityProfile_Unconfined}

// selinuxOptions are the labels of pods and containers on a host with SELinux. CRI cannot switch the labels off. The type spc_t of the package
// container-selinux is not confined, and Kubernetes names it for containers that use files of the host. The default type is refused the
// directories of the run.
func selinuxOptions(selinux bool) *api.SELinuxOption {
	if !selinux {
		return nil
	}
	return &api.SELinuxOption{Type: "spc_t"}
}

// profile is the seccomp profile of pods and containers.
func profile(s engine.Seccomp) *api.SecurityProfile {
	if s == engine.DefaultSeccomp {
		return &api.SecurityProfile{ProfileType: api.SecurityProfile_RuntimeDefault}
	}
	return unconfined
}

// podConfig is a pod for one container, with the limits of that container: runtimes size a virtual machine by them. dir holds
// the log. parent is the pod's cgroup, empty for the engine's choice.
func podConfig(spec engine.Spec, limits *api.LinuxContainerResources, s engine.Session, dir, parent string) *api.PodSandboxConfig {
	c := &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: spec.ID, Uid: spec.ID, Namespace: namespace},
		LogDirectory: dir,
		Labels:       labels(spec, s.RunID),
		Linux: &api.LinuxPodSandboxConfig{
			CgroupParent: parent,
			Resources:    limits,
			SecurityContext: &api.LinuxSandboxSecurityContext{
				NamespaceOptions: namespaces(spec, s.Pods), Seccomp: profile(s.Seccomp), Apparmor: unconfined, SelinuxOptions: selinuxOptions(locality.HasSELinux()),
			},
		},
	}
	if spec.Network != engine.HostNet {
		c.Hostname = "touchstone"
	}
	return c
}

// containerConfig is the container of that pod. isProbe marks the probe's image, which has no user. The config then names none
// either, because the engine would look into the image for it.
func containerConfig(spec engine.Spec, limits *api.LinuxContainerResources, s engine.Session, dir string, isProbe bool) *api.ContainerConfig {
	c := &api.ContainerConfig{
		Metadata: &api.ContainerMetadata{Name: "probe"},
		Image:    imageSpec(spec.Image),
		// Both replace the image's program.
		Command:    spec.Process.Args[:1],
		Args:       spec.Process.Args[1:],
		WorkingDir: "/",
		LogPath:    logName,
		Labels:     labels(spec, s.RunID),
		// CRI has no tmpfs.
		Mounts: []*api.Mount{{ContainerPath: "/tmp", HostPath: filepath.Join(dir, "tmp")}},
		Linux: &api.LinuxContainerConfig{
			Resources: limits,
			SecurityContext: &api.LinuxContainerSecurityContext{
				NamespaceOptions: namespaces(spec, s.Pods), ReadonlyRootfs: !spec.Writable, NoNewPrivs: true, Seccomp: profile(s.Seccomp),
				Apparmor: unconfined, SelinuxOptions: selinuxOptions(locality.HasSELinux()),
				// A kubelet sends them too. Without them an engine leaves /proc open, and the runtime makes fewer mounts.
				MaskedPaths: engine.MaskedPaths(), ReadonlyPaths: engine.ReadonlyPaths(),
			},
		},
	}
	if !isProbe {
		c.Linux.SecurityContext.RunAsUser = &api.Int64Value{} // root
	}
	for _, e := range spec.Process.Env {
		name, value, _ := strings.Cut(e, "=")
		c.Envs = append(c.Envs, &api.KeyValue{Key: name, Value: []byte(value)})
	}
	for _, m := range spec.Mounts {
		c.Mounts = append(c.Mounts, &api.Mount{ContainerPath: m.Target, HostPath: m.Source, Readonly: m.ReadOnly})
	}
	return c
}

func labels(spec engine.Spec, runID string) map[string]string {
	return map[string]string{runLabel: runID, idLabel: spec.ID}
}

// namespaces are the namespaces of a pod and its container. By default the process has a PID namespace of its own and the ID 1, as
// on all targets. CRI-O then needs no pause container.
func namespaces(spec engine.Spec, p engine.Pods) *api.NamespaceOption {
	o := &api.NamespaceOption{Pid: api.NamespaceMode_CONTAINER}
	if p.SharePIDs {
		o.Pid = api.NamespaceMode_POD
	}
	if spec.Network == engine.HostNet {
		o.Network = api.NamespaceMode_NODE
	}
	return o
}

// imageSpec names an image. CRI-O reads only the second field.
func imageSpec(ref string) *api.ImageSpec { return &api.ImageSpec{Image: ref, UserSpecifiedImage: ref} }

// resources are limits in CRI's form. They leave swap to the engine, which allows none, as a kubelet does. If runsc makes the
// cgroup they allow all swap: runsc raises the memory limit before the limit of memory and swap, which v1 refuses.
func (h handler) resources(r engine.Resources) *api.LinuxContainerResources {
	l := &api.LinuxContainerResources{MemoryLimitInBytes: r.Memory, CpusetCpus: r.CPUSet}
	if r.CPU > 0 {
		l.CpuQuota, l.CpuPeriod = r.CPUQuota(), engine.CPUPeriod
	}
	if r.Memory > 0 && h.isGVisor() && !h.hasGVisorShim() {
		l.MemorySwapLimitInBytes = -1
	}
	return l
}

// The overhead of a virtual machine in the pod's cgroup, without the guest's own memory, is the overhead in the RuntimeClass of Kata
// Containers for QEMU. A kubelet adds it to the limits of a pod. Without it a small limit of memory would kill the hypervisor.
const (
	guestCPU       = 0.25
	guestMemoryMiB = 160
	// defaultGuestMiB is Kata's default memory of a guest.
	defaultGuestMiB = 2048
)

// overhead is the part of the pod's limits that is for the virtual machine. Without a virtual machine it is zero.
func (h handler) overhead() engine.Resources {
	if h.guest == nil {
		return engine.Resources{}
	}
	return engine.Resources{CPU: guestCPU, Memory: (guestMemoryMiB + cmp.Or(h.guest.MemoryMiB, defaultGuestMiB)) << 20}
}

// podLimits are the limits of the pod's cgroup for the limits of its container.
func (h handler) podLimits(r engine.Resources) cgroup.Limits {
	o := h.overhead()
	if r.CPU > 0 {
		r.CPU += o.CPU
	}
	if r.Memory > 0 {
		r.Memory += o.Memory
	}
	return cgroup.Limits{CPU: r.CPU, Memory: r.Memory, PIDs: r.PIDs}
}

// limitPod sets the limits of the pod's cgroup to the limits of its one container. A kubelet does so before its first request,
// and when it resizes a pod. With most runtimes the container's own limits repeat them. gVisor's shim ignores the
// container's limits, and only the pod's hold. CRI has no limit of processes for a container: a kubelet sets it on the pod, too.
func (c *container) limitPod(r engine.Resources) error {
	if c.group == nil || r == c.limits {
		return nil
	}
	if r.CPU != c.limits.CPU || r.Memory != c.limits.Memory || r.PIDs != c.limits.PIDs {
		if err := c.group.Limit(c.e.handler.podLimits(r)); err != nil {
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
	limits := engine.Resources{CPU: cmp.Or(update.CPU, old.CPU), Memory: cmp.Or(update.Memory, old.Memory), PIDs: cmp.Or(update.PIDs, old.PIDs), CPUSet: old.CPUSet}
	if old.CPUSet != "" && update.CPUSet != "" && update.CPUSet != old.CPUSet {
		limits.CPUSet += "," + update.CPUSet
	}
	return limits
}

// wider returns limits that allow both the old and the new ones.
func wider(old, next engine.Resources) engine.Resources {
	return engine.Resources{CPU: more(old.CPU, next.CPU), Memory: more(old.Memory, next.Memory), PIDs: more(old.PIDs, next.PIDs), CPUSet: next.CPUSet}
}

// more returns the higher of two limits. 0 means unlimited.
func more[T float64 | int64](a, b T) T {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}
