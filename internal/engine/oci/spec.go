package oci

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// The files of a bundle: config.json by the OCI specification. The runtime makes pid.
const (
	configName    = "config.json"
	pidName       = "pid"
	resourcesName = "resources.json" // of the last update
)

// defaultCapabilities are the capabilities that containerd, CRI-O, Docker and Podman all grant by default.
var defaultCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL",
}

// bundleSpec is the config.json of a container. It is the output of `runc spec` (no seccomp filter, masked paths in /proc
// and /sys) without the cgroup mount and the message queue, which not every runtime and host supports.
//
// The bundle has no seccomp filter unless a plan selects one: a filter costs time at every system call, and engines bring different
// ones. Only the runtime is measured here.
func bundleSpec(spec engine.Spec, cgroupsPath string, rootless bool) *specs.Spec {
	s := &specs.Spec{
		Version:  "1.0.2", // crun 1.8 refuses newer versions
		Root:     &specs.Root{Path: spec.Rootfs, Readonly: true},
		Hostname: "touchstone",
		Process:  processSpec(spec.Process),
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: devptsOptions(rootless)},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
			{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=1777"}},
		},
		Linux: &specs.Linux{
			CgroupsPath: cgroupsPath,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
			},
			MaskedPaths: engine.MaskedPaths(), ReadonlyPaths: engine.ReadonlyPaths(),
		},
	}
	if spec.Network != engine.HostNet {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace})
		// The sysfs of the host's network namespace belongs to the host's user namespace, and needs root for a mount.
		s.Mounts = append(s.Mounts, specs.Mount{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}})
	}
	for _, m := range spec.Mounts {
		if m.Source == "" {
			s.Mounts = append(s.Mounts, specs.Mount{Destination: m.Target, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "mode=1777"}})
			continue
		}
		options := []string{"rbind", "rw"}
		if m.ReadOnly {
			options[1] = "ro"
		}
		s.Mounts = append(s.Mounts, specs.Mount{Destination: m.Target, Type: "bind", Source: m.Source, Options: options})
	}
	if rootless {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
		s.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(os.Getuid()), Size: 1}}
		s.Linux.GIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(os.Getgid()), Size: 1}}
	} else {
		s.Linux.Resources = resources(spec.Resources)
		s.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	}
	return s
}

// defaultFilter is Docker's default filter for the capabilities of a bundle and for this kernel. Bare runtimes have no default.
func defaultFilter(s *specs.Spec) (*specs.LinuxSeccomp, error) {
	filter, err := seccomp.GetDefaultProfile(s)
	if err != nil {
		return nil, fmt.Errorf("make the default seccomp filter: %w", err)
	}
	return filter, nil
}

func devptsOptions(rootless bool) []string {
	options := []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}
	if !rootless { // group 5 is not mapped in a user namespace of one ID
		options = append(options, "gid=5")
	}
	return options
}

func processSpec(p engine.Process) *specs.Process {
	return &specs.Process{
		Args:            p.Args,
		Env:             append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, p.Env...),
		Cwd:             "/",
		NoNewPrivileges: true,
		Capabilities: &specs.LinuxCapabilities{
			Bounding: defaultCapabilities, Effective: defaultCapabilities, Permitted: defaultCapabilities,
		},
	}
}

func resources(r engine.Resources) *specs.LinuxResources {
	s := &specs.LinuxResources{}
	if r.CPU > 0 || r.CPUSet != "" {
		s.CPU = &specs.LinuxCPU{Cpus: r.CPUSet}
	}
	if r.CPU > 0 {
		quota, period := r.CPUQuota(), uint64(engine.CPUPeriod)
		s.CPU.Quota, s.CPU.Period = &quota, &period
	}
	if r.Memory > 0 {
		s.Memory = &specs.LinuxMemory{Limit: &r.Memory}
	}
	if r.PIDs > 0 {
		s.Pids = &specs.LinuxPids{Limit: &r.PIDs}
	}
	return s
}

// writeJSON writes a file of a bundle.
func writeJSON(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	return os.WriteFile(file, data, 0o600)
}
