package diagnosis

import (
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/refusal"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// message is a message of a real program, with its diagnosis. The programs and their versions differ on purpose.
type message struct {
	text string
	f    Facts
	// cause and advice are parts of the diagnosis; an unknown error has no cause.
	cause, advice string
	transient     bool
}

// at describes a target of an engine.
func at(engineName, runtime string) Facts {
	name := engineName
	if name == "" {
		name = "oci"
	}
	f := Facts{Info: engine.Info{Target: target.Target{Engine: name, Runtime: runtime}, Isolation: engine.SharedKernel}, Engine: engineName, Root: true}
	if runtime == "runsc" {
		f.Isolation = engine.UserKernel
	}
	return f
}

// withRegistry adds the run's registry.
func (f Facts) withRegistry() Facts {
	f.Registry = "127.0.0.1:36123"
	return f
}

// sandbox describes a target with a release of gVisor.
func sandbox(engineName, version string) Facts {
	f := at(engineName, "runsc")
	f.Binary, f.Version, f.Kernel = "/usr/bin/runsc", version, "6.18.44"
	return f
}

const (
	shim    = "create container \"x\" with containerd/crun: failed to create containerd task: failed to create shim task: OCI runtime create failed: "
	noLogOf = "unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime.v2.task/moby/931d/log.json: no such file or directory): "
	dockerd = "docker: /usr/sbin/dockerd ended with exit code 1; the end of its log:\n" +
		`time="2026-11-28T10:00:00Z" level=warning msg="failed to retrieve docker-init version: exec: \"docker-init\": executable file not found in $PATH"` + "\n"
	resolve = `pull image 127.0.0.1:36123/touchstone/r/x/probe:latest: failed to pull and unpack image "127.0.0.1:36123/touchstone/r/x/probe:latest": ` +
		`failed to resolve reference "127.0.0.1:36123/touchstone/r/x/probe:latest": `
)

var messages = map[string][]message{
	"programs": {
		{dockerd + "failed to find runc binary", at("docker", "crun"), "Docker needs the program runc, also for other runtimes", "install runc", false},
		{dockerd + `failed to start daemon: exec: "runc": executable file not found in $PATH`, at("docker", "crun"), "Docker needs the program runc, also for other runtimes", "install runc", false},
		{dockerd + `time="2026-11-28T10:00:00Z" level=fatal msg="exec: \"iptables\": executable file not found in $PATH"`, at("docker", "runc"), `the program "iptables"`, "install iptables", false},
		{shim + noLogOf + `exec: "runc": executable file not found in $PATH: unknown`, at("containerd", "runc"), `containerd does not find the program "runc"`, "install runc", false},
		{shim + noLogOf + `exec: "nvidia-container-runtime": executable file not found in $PATH: unknown`, at("docker", "nvidia"), "nvidia-container-runtime", "install nvidia-container-toolkit", false},
		{shim + noLogOf + "fork/exec /usr/bin/crun : no such file or directory: : unknown", at("docker", "crun"), `the path "/usr/bin/crun " begins or ends with a blank`, "from the path /usr/bin/crun in /etc/docker/daemon.json, and restart Docker", false},
		{shim + noLogOf + "fork/exec \u00a0/opt/youki: no such file or directory: unknown", at("containerd", "youki"), "begins or ends with a blank", "/opt/youki in the configuration of containerd", false},
		{"failed to start daemon: invalid runtime \"crun\": exec: \"/usr/bin/crun\t\": stat /usr/bin/crun\t: no such file or directory", at("docker", "crun"), `"/usr/bin/crun\t"`, "/usr/bin/crun in /etc/docker/daemon.json", false},
		{shim + noLogOf + "fork/exec /nowhere/crun: no such file or directory: unknown", at("docker", "crun"), `does not find the program "/nowhere/crun"`, "correct the path", false},
		{shim + noLogOf + "fork/exec /there/nvidia-container-runtime: no such file or directory: unknown", at("docker", "nvidia"), "the interpreter or the loader", "file /there/nvidia-container-runtime", false},
		{shim + noLogOf + "fork/exec /opt/runc: exec format error: unknown", at("containerd", "runc"), "/opt/runc is not a program for this machine", "file /opt/runc", false},
		{"create container \"x\": fork/exec /mnt/crun: permission denied", at("", "crun"), "/mnt/crun may not be executed", "chmod 755 /mnt/crun", false},
		{shim + noLogOf + "crun did not terminate successfully: exit status 127: crun: error while loading shared libraries: libyajl.so.2: cannot open shared object file: No such file or directory", at("docker", "crun"), "libyajl.so.2", "static build", false},
		{`could not find "netavark" in one of {[/usr/local/libexec/podman /usr/libexec/podman]}.  To resolve this error, set the helper_binaries_dir key`, at("podman", "crun"), `the program "netavark"`, "install netavark", false},
		{"could not find a working conmon binary (configured options: [/usr/libexec/podman/conmon]): invalid argument", at("podman", "crun"), "conmon", "install conmon", false},
		{`failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/probe": permission denied: unknown`, at("docker", "runc"), "the program /probe of the container", "findmnt", false},
		{"OCI runtime error: crun: executable file `/probe` not found: No such file or directory", at("podman", "crun"), "the program /probe of the container", "findmnt", false},
	},
	"limits": {
		{"watch log files: inotify_init1: too many open files", at("containerd", "runc"), "inotify instances", "sysctl -w fs.inotify.max_user_instances=", false},
		{"failed to create CRI service: failed to create cni conf monitor for default: failed to create fsnotify watcher: too many open files", at("containerd", "runc"), "inotify instances", "fs.inotify.max_user_instances", false},
		{"start containerd: rpc error; the end of its log:\n" + `time="2026-11-28T10:00:00Z" level=warning msg="failed to load plugin io.containerd.grpc.v1.cri" error="failed to create CRI service: failed to create fsnotify watcher: too many open files"`, at("containerd", "runc"), "inotify instances", "fs.inotify.max_user_instances", false},
		{"error configuring CNI network plugin: failed to create new watcher too many open files", at("podman", "crun"), "inotify instances", "fs.inotify.max_user_instances", false},
		{"watch for exit files in /run/x: inotify_add_watch: no space left on device", at("podman", "crun"), "inotify watches", "fs.inotify.max_user_watches", false},
		{"fork/exec /usr/bin/crun: too many open files", at("", "crun"), "as its limit allows", "ulimit -n", false},
		{"open /run/x: too many open files in system", at("", "runc"), "the kernel allows", "fs.file-max", false},
		{"container init caused: join session keyring: create session key: disk quota exceeded: unknown", at("docker", "runc"), "kernel keys", "kernel.keys.maxkeys", false},
		{"runc create failed: unable to start container process: error during container init: unable to join session keyring: unable to create session key: disk quota exceeded", at("", "runc"), "kernel keys", "kernel.keys.maxbytes", false},
		{"runtime: failed to create new OS thread (have 7 already; errno=11)\nfatal error: newosproc; pthread_create: Resource temporarily unavailable", at("", "runc"), "processes or threads", "pids.max", true},
		{"fork/exec /usr/bin/runc: resource temporarily unavailable", at("", "runc"), "processes or threads", "TasksMax", true},
		{"crun: unshare: No space left on device", at("", "crun"), "no more namespaces", "user.max_user_namespaces", false},
		{"runc create failed: unable to start container process: can't get final child's PID from pipe: clone: No space left on device", at("podman", "runc"), "no more namespaces", "sysctl", false},
		{"write /sys/fs/cgroup/cpuset/touchstone-x/cgroup.procs: no space left on device", at("", "runc"), "no CPUs or no memory nodes", "cpuset.cpus", false},
		{"error mounting \"proc\" to rootfs at \"/proc\": mount proc:/proc: no space left on device", at("docker", "runc"), "as many mounts", "fs.mount-max", false},
		{"write /var/lib/x/config.json: no space left on device", at("", "runc"), "a file system is full", "df -h", false},
	},
	"versions": {
		{shim + `"unknown version specified": unknown`, at("containerd", "crun"), "too old for this engine", "crun 1.21", false},
		{shim + "creating container: cannot create sandbox: cannot read client sync file: waiting for sandbox to start: EOF: unknown", sandbox("containerd", "containerd 1.6.20, runsc version release-20221219.0"), "its release 20221219.0 is too old for this kernel, 6.18.44", "--runtime runsc=PATH", false},
		{"creating container: cannot create sandbox: cannot read client sync file: waiting for sandbox to start: EOF; `/usr/bin/runsc create` failed: exit status 128", sandbox("podman", "Podman 4.3.1, runsc version release-20240729.0"), "too old for this kernel", "since 2025", false},
		{"OCI runtime create failed: creating container: cannot create sandbox: cannot read client sync file: waiting for sandbox to start: EOF: unknown", sandbox("docker", "Docker 28.1, runsc version release-20260401.0"), "gVisor's sandbox exited while it started (", "--debug-log=/tmp/runsc/", false},
		{"starting container: cannot run with network enabled in root network namespace", sandbox("", "runsc version release-20221219.0"), "too old for this kernel", "--runtime runsc=PATH", false},
		{"flag provided but not defined: -console", at("docker", "runc"), "the flag -console", "leave the option out", false},
		{"unknown flag: --seccomp-policy", at("podman", "crun"), "the flag --seccomp-policy", "leave the option out", false},
		{"crun: unrecognized option '--platform=kvm'", at("", "crun"), "the flag --platform", "leave the option out", false},
		{"error: unexpected argument '--oci-seccomp' found", at("", "youki"), "the flag --oci-seccomp", "leave the option out", false},
		{`failed to setup network for sandbox "1": incompatible CNI versions; config is "1.0.0", plugin supports ["0.1.0" "0.4.0"]`, at("containerd", "runc"), "1.0.0", "containernetworking-plugins", false},
	},
	"rights": {
		{"runc create failed: unable to start container process: error during container init: open sysctl net.ipv4.ip_unprivileged_port_start file: reopen fd 8: permission denied: unknown", at("docker", "runc"), "AppArmor of the surrounding LXC container denies net.ipv4.ip_unprivileged_port_start", "lxc.apparmor.profile", false},
		{"crun: write cgroup.procs: Permission denied", Facts{Engine: "docker"}, "to the daemon or to its runtime", "delegated cgroup", false},
		{"unable to start container process: unable to start init: fork/exec /proc/self/fd/6: operation not permitted", at("docker", "runc"), "the system refuses a right", refusal.Forbidden, false},
		{"open /sys/fs/cgroup/x: permission denied", at("", "runc"), "the system refuses a right", refusal.Forbidden, false},
		{"create container: unshare: operation not permitted", at("", "crun"), "the system refuses a right", refusal.Forbidden, false},
		{"crun: mount `proc` to `proc`: Operation not permitted", at("podman", "crun"), "the system refuses a right", refusal.Forbidden, false},
		{"youki: failed to create container: IO error: Permission denied (os error 13)", at("", "youki"), "the system refuses a right", refusal.Forbidden, false},
		{"open /run/x: permission denied", Facts{}, "this user lacks a right", "run as root", false},
		{"unshare: operation not permitted", Facts{}, "this user lacks a right", "run as root", false},
		{"cgroups in hybrid mode not supported, drop all controllers from cgroupv2", Facts{}, "side by side", "run as root, so that", false},
		{"cgroups in hybrid mode not supported, drop all controllers from cgroupv2", at("containerd", "crun"), "side by side", "--managed", false},
		{"container init caused: apply apparmor profile: apparmor failed to apply profile: write /proc/self/attr/exec: invalid argument: unknown", at("docker", "runc"), "AppArmor profile", "package apparmor", false},
		{`container init caused "apparmor: config provided but apparmor not supported": unknown`, at("docker", "runc"), "AppArmor profile", "package apparmor", false},
		{dockerd + "failed to start daemon: AppArmor enabled on system but the docker-default profile could not be loaded: exit status 243", at("docker", "runc"), "AppArmor profile", "package apparmor", false},
		{"write /proc/self/attr/apparmor/exec: no such file or directory", at("", "runc"), "AppArmor profile", "package apparmor", false},
		{"container init caused: failed to set /proc/self/attr/keycreate on procfs: write /proc/self/attr/keycreate: invalid argument: unknown", at("containerd", "runc"), "SELinux", "container-selinux", false},
		{"starting container process caused: error adding seccomp filter rule for syscall bdflush: requested action matches default action of filter", at("podman", "runc"), "seccomp", "libseccomp", false},
		{"error loading seccomp filter into kernel: invalid argument", at("", "runc"), "seccomp", "libseccomp", false},
		{"open /proc/4711/ns/net: permission denied", at("", "runc"), "the system refuses a right", refusal.Forbidden, true},
	},
	"images": {
		{`failed to get sandbox image "registry.k8s.io/pause:3.8": failed to pull image "registry.k8s.io/pause:3.8": failed to do request: Head "https://registry.k8s.io/v2/pause/manifests/3.8": dial tcp: lookup registry.k8s.io on [::1]:53: no such host`, at("containerd", "runc").withRegistry(), "cannot pull registry.k8s.io/pause:3.8", "ctr -n k8s.io images import FILE", false},
		{`failed to get sandbox image "docker.io/rancher/pause:3.1": failed to resolve reference "docker.io/rancher/pause:3.1": failed to do request: Head https://registry-1.docker.io/v2/rancher/pause/manifests/3.1: dial tcp: lookup registry-1.docker.io: Try again`, at("containerd", "runc"), "docker.io/rancher/pause:3.1", "--managed", false},
		{`failed to get sandbox image "k8s.gcr.io/pause:3.1": failed to do request: Head https://k8s.gcr.io/v2/pause/manifests/3.1: dial tcp 108.177.97.82:443: i/o timeout`, at("containerd", "runc"), "k8s.gcr.io/pause:3.1", "images import", false},
		{`creating pod sandbox with name "k8s_x": initializing source docker://registry.k8s.io/pause:3.6: Get "https://asia-east1-docker.pkg.dev/v2/k8s-artifacts-prod/images/pause/manifests/3.6": dial tcp 64.233.189.82:443: i/o timeout`, at("cri-o", "crun"), "cri-o has no pause image and cannot pull registry.k8s.io/pause:3.6", "podman load", false},
		{`failed pulling image "k8s.gcr.io/pause:3.2": Error response from daemon: Get https://k8s.gcr.io/v2/: dial tcp 74.125.137.82:443: connect: connection refused`, at("docker", "runc"), "Docker has no pause image", "docker load", false},
		{`failed to get sandbox image "registry.k8s.io/pause:3.10": unexpected status from HEAD request: 503 Service Unavailable`, at("containerd", "runc"), "busy", "later", true},
		{`failed to get sandbox image "gcr.io/google_containers/pause:3.0": failed to pull image: locking ref k8s.io/2/layer-sha256:f1 failed: ref locked: unavailable`, at("containerd", "runc"), "busy", "later", true},
		{resolve + "unexpected status from HEAD request to https://mirror.example/v2/touchstone/r/x/probe/manifests/latest?ns=127.0.0.1%3A36123: 403 Forbidden", at("containerd", "runc").withRegistry(), "asks the mirror mirror.example for images of the run's registry 127.0.0.1:36123", "--managed", false},
		{resolve + `failed to do request: Head "http://10.0.0.7:5000/v2/proxy/touchstone/r/x/probe/manifests/latest?ns=127.0.0.1%3A36123": dial tcp 10.0.0.7:5000: connect: no route to host`, at("containerd", "runc").withRegistry(), "the mirror 10.0.0.7:5000", "remove the mirror", false},
		{`pull image err: initializing source docker://127.0.0.1:36123/touchstone/r/x/probe:latest: pinging container registry mirror.lan: Get "https://mirror.lan/v2/touchstone/r/": x509: certificate signed by unknown authority`, at("cri-o", "runc").withRegistry(), "the mirror mirror.lan", "remove the mirror", false},
		{resolve + `failed to do request: Head "https://127.0.0.1:36123/v2/touchstone/r/x/probe/manifests/latest": http: server gave HTTP response to HTTPS client`, at("containerd", "runc").withRegistry(), "by TLS: a hosts.toml", "--managed", false},
		{`Get "https://127.0.0.1:36123/v2/": http: server gave HTTP response to HTTPS client`, at("docker", "runc").withRegistry(), "by TLS", "insecure-registries", false},
		{`pinging container registry 127.0.0.1:36123: Get "https://127.0.0.1:36123/v2/": http: server gave HTTP response to HTTPS client`, at("cri-o", "runc").withRegistry(), "by TLS", "[[registry]]", false},
		{"Source image rejected: Running image docker://127.0.0.1:36123/touchstone/r/x/probe:latest is rejected by policy.", at("cri-o", "runc").withRegistry(), "signature policy", "policy.json", false},
		{"initializing source docker://127.0.0.1:36123/touchstone/r/x/probe:latest: registry 127.0.0.1:36123 is blocked in /etc/containers/registries.conf", at("cri-o", "runc"), "/etc/containers/registries.conf blocks", "blocked = true", false},
		{"open /etc/containers/policy.json: no such file or directory", at("cri-o", "runc"), "no signature policy", "containers-common", false},
		{resolve + `failed to do request: Head "http://127.0.0.1:36123/v2/touchstone/r/x/probe/manifests/latest": dial tcp 127.0.0.1:36123: connect: connection refused`, at("containerd", "runc").withRegistry(), "", "", true},
	},
	"networks": {
		{"unable to start container 7a7f: netavark: No such file or directory (os error 2)", at("podman", "crun"), "does not find the program iptables", "package iptables", false},
		{"netavark (exit code 1): No such file or directory (os error 2)", at("podman", "crun"), "iptables", "package iptables", false},
		{"netavark: nftables error: unable to execute nft: No such file or directory (os error 2)", at("podman", "crun"), "does not find the program nft", "package nftables", false},
		{`failed to set up sandbox container network: failed to find plugin "loopback" in path [/opt/cni/bin]`, at("containerd", "runc"), `the CNI plug-in loopback is in none of /opt/cni/bin`, "containernetworking-plugins", false},
		{`plugin type="bridge" failed (add): failed to find plugin "bridge" in path [/usr/local/concourse/bin]`, at("cri-o", "runc"), "bridge", "configuration of cri-o", false},
		{"netavark: unable to append rule '! -d 224.0.0.0/4 -j MASQUERADE' to table 'nat': code: 4, msg: Warning: Extension MASQUERADE revision 0 not supported, missing kernel module?\niptables v1.8.9 (nf_tables):  RULE_APPEND failed (No such file or directory): rule in chain NETAVARK-1700", at("podman", "crun"), "packet filter", "modprobe", false},
		{"iptables v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)", at("docker", "runc"), "packet filter", "modprobe", false},
		{"iptables v1.8.7 (legacy): can't initialize iptables table `nat': Table does not exist (do you need to insmod?)", at("docker", "runc"), "packet filter", "modprobe", false},
		{"NetworkReady is false: NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized", at("containerd", "runc"), "the network of containerd is not configured", "/etc/cni/net.d", false},
	},
	"services": {
		{"docker 20.10.24 does not report the process of a container", at("docker", "runc"), "cri-dockerd reports no process ID", "measure Docker itself, as docker/runc", false},
		{"isulad 2.1 does not report the process of a container", at("isulad", "runc"), "isulad reports no process ID", "containerd or CRI-O", false},
		{"failed to create shim task: syslog delivery error: no such file or directory", at("containerd", "kata"), "syslog", "rsyslogd", false},
		{`no runtime for "x" is configured`, at("containerd", "x"), "no runtime x", "--managed", false},
		{"failed to find runtime handler youki from runtime list map[runc:]", at("cri-o", "youki"), "no runtime youki", "--managed", false},
		{"Unknown runtime specified io.containerd.no-such-shim.v2", at("docker", "shim"), "no runtime io.containerd.no-such-shim.v2", "name a runtime", false},
		{"unknown or invalid runtime name: sysbox-runc", at("docker", "sysbox-runc"), "no runtime sysbox-runc", "name a runtime", false},
		{"create container: no answer within 20s", at("", "runsc"), "gVisor did not answer", "systrap", true},
		{"create container: no answer within 20s", at("", "runc"), "did not answer", "/proc/pressure", true},
		{"timed out connecting to vsock 3:1024", Facts{Info: engine.Info{Isolation: engine.VM}, Engine: "containerd", Guest: "/k.toml"}, "the guest or its agent", "the memory in /k.toml; a slow host", true},
		{"opening KVM device file: no such file or directory", at("", "runsc"), "/dev/kvm", "a working /dev/kvm", false},
		{"creating container: cannot create sandbox: error opening KVM device file (/dev/kvm): open /dev/kvm: permission denied", at("docker", "runsc"), "/dev/kvm", "another platform", false},
		{shim + noLogOf + "youki did not terminate successfully: exit status 1: Error: failed to seal /proc/self/exe\n\nCaused by:\n    Device or resource busy (os error 16)", at("containerd", "youki"), "youki could not seal", "repeat", true},
		{"starting container: open /proc/3012/oom_score_adj: no such process; unable to start container", at("podman", "runsc"), "had ended at once", "repeat", true},
		{"the sandbox runs on another platform", at("", "runsc"), "platform of the target", "ignores the option platform", false},
	},
	"unknown": {
		{"a new message", at("", "runc"), "", "", true},
		{`failed to setup network for sandbox "0a": mtu 1500 : the sandbox process 2502 exited`, at("containerd", "runc"), "", "", true},
		{shim + noLogOf + "runc did not terminate successfully: exit status 139: unknown", at("containerd", "runc"), "", "", true},
		{"crun: write to `/proc/4711/uid_map`: No such file or directory", at("", "crun"), "", "", true},
		{"writing to cgroup.procs: device or resource busy", at("", "runc"), "", "", true},
		{"read init-p: connection reset by peer", at("", "runc"), "", "", true},
		{"unlinkat /run/runc/x: text file busy", at("", "runc"), "", "", true},
		{"crun: mount `cgroup2` to `sys/fs/cgroup`: Invalid argument", at("", "crun"), "", "", false},
		{"runc create failed: invalid rootfs: not a directory", at("", "runc"), "", "", false},
		{"youki: failed to prepare rootfs: Os { code: 30, kind: ReadOnlyFilesystem, message: \"Read-only file system\" }", at("", "youki"), "", "", false},
		{"clone: Function not implemented", at("", "crun"), "", "", false},
	},
}
