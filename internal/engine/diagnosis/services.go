package diagnosis

const kvm = "devkvm-and-virtual-machines"

// services are engines and shims that lack a part.
var services = []rule{
	{
		patterns: match(`does not report the process of a container`),
		when:     isOf("docker"),
		cause:    "cri-dockerd reports no process ID, and Touchstone needs it to see the exit of a container",
		advice:   "measure Docker itself, as docker/${runtime}",
	},
	{
		patterns: match(`does not report the process of a container`),
		cause:    "${engine} reports no process ID, and Touchstone needs it to see the exit of a container",
		advice:   "use containerd or CRI-O, or a version of ${engine} with the key pid in the verbose ContainerStatus",
		general:  true,
	},
	{
		patterns: match(`syslog delivery error`),
		cause:    "the shim finds no syslog daemon",
		advice:   "start a syslog daemon (systemd-journald, rsyslogd, busybox syslogd)" + orManaged + ", which has its own",
	},
	{
		patterns: match(`no runtime for "?(?P<handler>[^"\s]*)`, `failed to find runtime handler (?P<handler>\S*)`, `(?i)unknown (?:or invalid )?runtime(?: name| specified)?:? "?(?P<handler>[^"\s]+)`),
		cause:    "${engine} has no runtime ${handler}",
		advice:   "name a runtime of its configuration, or configure this one" + orManaged,
	},
	{
		patterns:  match(`no answer within`, `timed out connecting to`),
		when:      hasGuest,
		cause:     "the hypervisor, the guest or its agent did not start",
		advice:    "check the programs, the kernel, its image or initrd, and the memory in ${guest}; a slow host needs a larger dial_timeout there. Kata logs the guest's console if this file has enable_debug = true and the engine logs at level debug, which a private one does not",
		page:      kvm,
		transient: true,
	},
	{
		patterns:  match(`no answer within`),
		when:      isGVisor,
		cause:     "gVisor did not answer in time",
		advice:    "choose another platform (systrap works nearly everywhere)",
		transient: true,
	},
	{
		patterns:  match(`no answer within`),
		cause:     "the runtime did not answer in time",
		advice:    "check whether the machine is too busy: cat /proc/pressure/cpu /proc/pressure/io",
		transient: true,
		general:   true,
	},
	{
		patterns:  match(`/proc/[0-9]+/oom_score_adj: no such process`),
		when:      isGVisor,
		cause:     "gVisor failed the start of a program that had ended at once: it could not set the OOM score of a process that was gone",
		advice:    "repeat the run",
		transient: true,
	},
	{
		patterns:  match(`failed to seal /proc/self/exe`),
		cause:     "youki could not seal the copy of its program, because the kernel used its memory at that moment",
		advice:    "repeat the run",
		transient: true,
	},
	{
		patterns: match(`runs on another platform`),
		cause:    "gVisor did not use the platform of the target",
		advice:   "correct the program behind the runtime: it ignores the option platform",
	},
	{
		patterns: match(`(?i)opening kvm`, `/dev/kvm`, `(?i)kvm device`),
		when:     func(f Facts) bool { return isBare(f) || isGVisor(f) },
		cause:    "the platform kvm cannot use /dev/kvm",
		advice:   "use a machine with a working /dev/kvm, or another platform (systrap works nearly everywhere)",
		page:     kvm,
	},
}
