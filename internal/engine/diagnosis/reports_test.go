package diagnosis

// reports are messages of public reports, and of machines of our own where source says so.
var reports = []struct {
	source string
	message
}{
	{
		"a machine of ours: Debian 12, Linux 6.18",
		message{shim + "creating container: cannot create sandbox: cannot read client sync file: waiting for sandbox to start: EOF: unknown", sandbox("containerd", "containerd 1.6.20~ds1, runsc version 0.0~20221219.0"), "its release 20221219.0 is too old for this kernel, 6.18.44", "a release of gVisor since 2025", false},
	},
	{
		"a machine of ours: Debian 12, Linux 6.18",
		message{`create container "x" with oci/runsc@platform=systrap: unknown platform: systrap`, sandbox("", "runsc version 0.0~20221219.0"), "this release of gVisor has no platform systrap", "--runtime runsc=PATH; or leave", false},
	},
	{
		"https://github.com/google/gvisor/issues/10295",
		message{"OCI runtime create failed: creating container: cannot create sandbox: cannot read client sync file: waiting for sandbox to start: EOF: unknown.", withKernel(sandbox("docker", "Docker 18.09.5, runsc version release-20240311.0"), "3.10.0-327.el7.x86_64"), "gVisor's sandbox exited while it started (", "--debug-log", false},
	},
	{
		"https://github.com/opencontainers/runc/issues/4972",
		message{"OCI runtime create failed: runc create failed: unable to start container process: error during container init: open sysctl net.ipv4.ip_unprivileged_port_start file: reopen fd 8: permission denied: unknown", at("docker", "runc"), "AppArmor of the surrounding LXC container", "lxc.apparmor.profile = unconfined", false},
	},
	{
		"https://github.com/containers/crun/issues/1485",
		message{"failed to create task for container: failed to create shim task: OCI runtime create failed: unknown version specified: unknown.", at("docker", "crun"), "the runtime is too old for this engine", "crun 1.21 or later", false},
	},
	{
		"https://github.com/containerd/containerd/issues/10984",
		message{"failed to create task for container: Unimplemented: failed to start shim: start failed: unsupported shim version (3): not implemented", at("docker", "runc"), "newer version than the running docker", "systemctl restart containerd", false},
	},
	{
		"https://github.com/containerd/containerd/issues/13763",
		message{`failed to create TTRPC connection: unsupported protocol: \b\x03\x12Yunix`, private(at("containerd", "runc")), "the shim is of a newer version than containerd", "--engine-bin containerd=PATH", false},
	},
	{
		"https://github.com/containerd/containerd/issues/6659",
		message{`failed to create shim task: OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:385: applying cgroup configuration for process caused: cannot enter cgroupv2 "/sys/fs/cgroup/default" with domain controllers -- it is in an invalid state: unknown`, at("containerd", "runc"), "the root of a container's cgroup namespace", "mkdir /sys/fs/cgroup/init", false},
	},
	{
		"the kernel's EBUSY of this write, in crun's spelling of https://github.com/containers/crun/issues/704",
		message{"OCI runtime error: writing file `/sys/fs/cgroup/cgroup.subtree_control`: Device or resource busy", at("podman", "crun"), "processes are in a cgroup that must pass controllers on", "cgroup.procs", false},
	},
	{
		"https://github.com/containers/crun/issues/704",
		message{"Error: OCI runtime error: writing file `/sys/fs/cgroup/cgroup.subtree_control`: Invalid argument", at("podman", "crun"), "while a real-time process is outside of the root cgroup", "ps -eo pid,cls,comm", false},
	},
	{
		"https://github.com/opencontainers/runc/issues/806",
		message{"failed to write 4531 to cgroup.procs: write /sys/fs/cgroup/cpu/blah/cgroup.procs: invalid argument", realTime(at("", "runc")), "Touchstone has a real-time policy", "chrt --other 0 touchstone", false},
	},
	{
		"https://github.com/kata-containers/tests/issues/1736", // no real-time process
		message{`process_linux.go:90: adding pid 146 to cgroups caused "failed to write 146 to cgroup.procs: write /sys/fs/cgroup/cpu,cpuacct/Burstable/pod_123-456/crio-37a5/cgroup.procs: invalid argument"`, at("cri-o", "runc"), "", "", false},
	},
	{
		"https://github.com/containerd/containerd/issues/1948",
		message{"failed to set OOM Score on shim: write /proc/714/oom_score_adj: permission denied: unknown", at("containerd", "runc"), "forbids a lower oom_score_adj", "restrict_oom_score_adj = true", false},
	},
	{
		"https://github.com/docker/for-linux/issues/1120",
		message{`failed to change OOM score to -500 error="open /proc/14839/oom_score_adj: permission denied"`, at("docker", "runc"), "forbids a lower oom_score_adj", `"oom-score-adjust": 0`, false},
	},
	{
		"https://github.com/opencontainers/runc/pull/1386",
		message{"container init caused: write /proc/self/oom_score_adj: permission denied", private(at("containerd", "runc")), "forbids a lower oom_score_adj", "CAP_SYS_RESOURCE", false},
	},
	{
		"https://github.com/containers/conmon/issues/187", // conmon goes on after its own message
		message{"conmon c3e7c69b367f1e370bb6 <error>: failed to write to /proc/self/oom_score_adj: Permission denied", at("podman", "crun"), "the system refuses a right", "", false},
	},
	{
		"https://github.com/nektos/act/issues/1899",
		message{"cannot share the host's network namespace when user namespaces are enabled", at("docker", "runc"), "userns-remap", "remove userns-remap", false},
	},
	{
		"https://github.com/moby/moby/issues/21130",
		message{"Privileged mode is incompatible with user namespaces.", at("docker", "runc"), "userns-remap", "/etc/docker/daemon.json", false},
	},
	{
		"https://github.com/opencontainers/runc/issues/3831",
		message{"apparmor failed to apply profile: write /proc/self/attr/apparmor/exec: no such file or directory", at("docker", "runc"), "AppArmor profile", "package apparmor", false},
	},
	{
		"https://github.com/docker/for-linux/issues/1129",
		message{"container init caused: apply apparmor profile: apparmor failed to apply profile: write /proc/self/attr/exec: permission denied: unknown.", at("docker", "runc"), "AppArmor profile", "package apparmor", false},
	},
	{
		"https://github.com/podman-container-tools/podman/issues/20314",
		message{"/bin/sh: error while loading shared libraries: /lib/x86_64-linux-gnu/libc.so.6: cannot apply additional memory protection after relocation: Permission denied", at("podman", "crun"), "SELinux refuses the label", "container-selinux", false},
	},
	{
		"https://github.com/cri-o/cri-o/issues/5345",
		message{"/usr/bin/env: error while loading shared libraries: libc.so.6: cannot change memory protections", at("cri-o", "runc"), "SELinux refuses the label", "container-selinux", false},
	},
}

func withKernel(f Facts, kernel string) Facts {
	f.Kernel = kernel
	return f
}

func private(f Facts) Facts {
	f.Private = true
	return f
}

func realTime(f Facts) Facts {
	f.RealTime = true
	return f
}
