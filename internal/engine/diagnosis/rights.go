package diagnosis

import "github.com/touchstone-bench/touchstone/internal/refusal"

const hybrid = "cgroups-in-hybrid-mode-not-supported"

// noScore are the messages of programs that may not protect a process against the OOM killer. conmon goes on after such a message.
var noScore = match(`(?i)failed to set OOM score on shim`, `(?i)failed to change OOM score`, `write /proc/(?:\d+|self|thread-self)/oom_score_adj: permission denied`)

// rights are refused rights.
var rights = []rule{
	{
		patterns: match(`hybrid mode`),
		when:     func(f Facts) bool { return isBare(f) && !isRoot(f) },
		cause:    "the runtime does not work with cgroups v1 and v2 side by side",
		advice:   "run as root, so that the unified hierarchy can be hidden from the runtime",
		page:     hybrid,
	},
	{
		patterns: match(`hybrid mode`),
		cause:    "the runtime does not work with cgroups v1 and v2 side by side",
		advice:   "hide the unified hierarchy from it by a private engine: --managed",
		page:     hybrid,
		general:  true,
	},
	{
		patterns: match(`sysctl (?P<sysctl>\S+) file: reopen fd \d+: permission denied`),
		cause:    "AppArmor of the surrounding LXC container denies ${sysctl} to newer versions of runc (since 1.2.8 and 1.3.3)",
		advice:   "set lxc.apparmor.profile = unconfined for the LXC container, or name an older runc with --runtime ${runtime}=PATH",
	},
	{
		patterns: noScore,
		when:     func(f Facts) bool { return isOf("containerd")(f) && !f.Private },
		cause:    noScoreCause,
		advice:   `set restrict_oom_score_adj = true below [plugins."io.containerd.cri.v1.runtime"] (containerd 1: io.containerd.grpc.v1.cri) in /etc/containerd/config.toml, and restart containerd` + orManaged,
	},
	{
		patterns: noScore,
		when:     func(f Facts) bool { return isOf("docker")(f) && !f.Private },
		cause:    noScoreCause,
		advice:   `set "oom-score-adjust": 0 in /etc/docker/daemon.json, and restart Docker` + orManaged,
	},
	{
		patterns: noScore,
		cause:    noScoreCause,
		advice:   "give the surrounding container or service CAP_SYS_RESOURCE (docker run --cap-add SYS_RESOURCE)",
		general:  true,
	},
	{
		patterns: match(`(?i)when user namespaces are enabled`, `(?i)privileged mode is incompatible with user namespaces`),
		cause:    "Docker maps the users of containers to other users of the host (userns-remap)",
		advice:   "remove userns-remap from /etc/docker/daemon.json and restart Docker" + orManaged,
		page:     "the-daemon-is-somewhere-else-or-touchstone-runs-in-a-container",
	},
	{
		patterns: match(
			`(?i)(?:apply|load|loading) apparmor profile`, `(?i)apparmor[^\n]*profile could not be loaded`,
			`/proc/(?:thread-)?self/(?:task/\d+/)?attr/apparmor/exec`, `apparmor not supported`,
		),
		cause:  "the AppArmor profile of the container cannot be used",
		advice: "install the package apparmor, and restart the engine, which loads its profile",
	},
	{
		patterns: match(
			`/proc/(?:thread-)?self/(?:task/\d+/)?attr/(?:keycreate|exec|fscreate)`, `cannot apply additional memory protection after relocation`,
			`cannot change memory protections`,
		),
		cause:   "SELinux refuses the label of the container or of its files",
		advice:  "install the package container-selinux; ausearch -m avc -ts recent shows the denial",
		page:    "the-daemon-is-somewhere-else-or-touchstone-runs-in-a-container",
		general: true, // AppArmor has the same files
	},
	{
		patterns: match(`(?i)(?:error (?:adding|loading)|unable to init|failed to (?:init\w*|load)) seccomp`),
		cause:    "the seccomp filter cannot be loaded",
		advice:   "use a newer libseccomp and a kernel with CONFIG_SECCOMP_FILTER",
	},
	{
		patterns: match(refused),
		when:     func(f Facts) bool { return isBare(f) && !isRoot(f) },
		cause:    "this user lacks a right",
		advice:   "run as root, or allow user namespaces and delegate a cgroup to this user",
		vague:    true,
		general:  true,
	},
	{
		patterns: match(refused),
		when:     func(f Facts) bool { return !isRoot(f) },
		cause:    "the system refuses a right to the daemon or to its runtime",
		advice:   "look at the log of the daemon; a rootless daemon needs a delegated cgroup: systemctl show -p Delegate user@$(id -u)",
		vague:    true,
		general:  true,
	},
	{
		patterns: match(refused),
		cause:    "the system refuses a right",
		advice:   refusal.Forbidden,
		vague:    true,
		general:  true,
	},
}

const noScoreCause = "this system forbids a lower oom_score_adj, as an unprivileged container does"

// refused matches EACCES and EPERM in the spelling of the C library, of Go and of Rust.
const refused = `(?i)permission denied|operation not permitted|\bos error (?:1|13)\)|\bE(?:PERM|ACCES)\b`
