package diagnosis

import "github.com/touchstone-bench/touchstone/internal/refusal"

// rights are refused rights.
var rights = []rule{
	{
		patterns: match(`hybrid mode`),
		when:     func(f Facts) bool { return isBare(f) && !isRoot(f) },
		cause:    "the runtime does not work with cgroups v1 and v2 side by side",
		advice:   "run as root, so that the unified hierarchy can be hidden from the runtime",
	},
	{
		patterns: match(`hybrid mode`),
		cause:    "the runtime does not work with cgroups v1 and v2 side by side",
		advice:   "hide the unified hierarchy from it by a private engine: --managed",
	},
	{
		patterns: match(`sysctl (?P<sysctl>\S+) file: reopen fd \d+: permission denied`),
		cause:    "AppArmor of the surrounding LXC container denies ${sysctl} to newer versions of runc (since 1.2.8 and 1.3.3)",
		advice:   "set lxc.apparmor.profile = unconfined for the LXC container, or name an older runc with --runtime ${runtime}=PATH",
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
		patterns: match(`/proc/(?:thread-)?self/(?:task/\d+/)?attr/(?:keycreate|exec|fscreate)`),
		cause:    "SELinux refuses the label of the container",
		advice:   "install the package container-selinux; ausearch -m avc -ts recent shows the denial",
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
	},
	{
		patterns: match(refused),
		when:     func(f Facts) bool { return !isRoot(f) },
		cause:    "the system refuses a right to the daemon or to its runtime",
		advice:   "look at the log of the daemon; a rootless daemon needs a delegated cgroup: systemctl show -p Delegate user@$(id -u)",
		vague:    true,
	},
	{
		patterns: match(refused),
		cause:    "the system refuses a right",
		advice:   refusal.Forbidden,
		vague:    true,
	},
}

// refused matches EACCES and EPERM in the spelling of the C library, of Go and of Rust.
const refused = `(?i)permission denied|operation not permitted|\bos error (?:1|13)\)|\bE(?:PERM|ACCES)\b`
