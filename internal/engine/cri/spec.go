package cri

import (
	"path/filepath"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
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
// call.
var unconfined = &api.SecurityProfile{ProfileType: api.SecurityProfile_Unconfined}

// podConfig is a pod for one container, with the limits of that container: runtimes size a virtual machine by them. dir holds
// the log. cgroup is the pod's cgroup, empty for the engine's choice.
func podConfig(spec engine.Spec, limits *api.LinuxContainerResources, runID, dir, cgroup string) *api.PodSandboxConfig {
	c := &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: spec.ID, Uid: spec.ID, Namespace: namespace},
		LogDirectory: dir,
		Labels:       labels(spec, runID),
		Linux: &api.LinuxPodSandboxConfig{
			CgroupParent:    cgroup,
			Resources:       limits,
			SecurityContext: &api.LinuxSandboxSecurityContext{NamespaceOptions: namespaces(spec), Seccomp: unconfined, Apparmor: unconfined},
		},
	}
	if spec.Network != engine.HostNet {
		c.Hostname = "touchstone"
	}
	return c
}

// containerConfig is the container of that pod. own marks the probe's image, which has no user. The config then names none
// either, because the engine would look into the image for it.
func containerConfig(spec engine.Spec, limits *api.LinuxContainerResources, runID, dir string, own bool) *api.ContainerConfig {
	c := &api.ContainerConfig{
		Metadata: &api.ContainerMetadata{Name: "probe"},
		Image:    imageSpec(spec.Image),
		// Both replace the image's program.
		Command:    spec.Process.Args[:1],
		Args:       spec.Process.Args[1:],
		WorkingDir: "/",
		LogPath:    logName,
		Labels:     labels(spec, runID),
		// CRI has no tmpfs.
		Mounts: []*api.Mount{{ContainerPath: "/tmp", HostPath: filepath.Join(dir, "tmp")}},
		Linux: &api.LinuxContainerConfig{
			Resources: limits,
			SecurityContext: &api.LinuxContainerSecurityContext{
				NamespaceOptions: namespaces(spec), ReadonlyRootfs: !spec.Writable, NoNewPrivs: true, Seccomp: unconfined, Apparmor: unconfined,
			},
		},
	}
	if !own {
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

// namespaces are the namespaces of a pod and its container. The process has a PID namespace of its own and the ID 1, as on
// all targets. CRI-O then needs no pause container.
func namespaces(spec engine.Spec) *api.NamespaceOption {
	o := &api.NamespaceOption{Pid: api.NamespaceMode_CONTAINER}
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
