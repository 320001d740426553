package diagnosis

// groups are cgroups that the kernel does not let a process use.
var groups = []rule{
	{
		patterns: match(
			`cannot enter cgroupv2 "(?P<group>[^"]+)" with domain controllers`,
			"(?i)cgroup\\.subtree_control[`'\"]?: device or resource busy",
		),
		cause:  "processes are in a cgroup that must pass controllers on, such as the root of a container's cgroup namespace",
		advice: "move them: mkdir /sys/fs/cgroup/init; xargs -rn1 </sys/fs/cgroup/cgroup.procs >/sys/fs/cgroup/init/cgroup.procs",
		page:   "holds-processes-no-internal-processes",
	},
	{
		patterns: match("(?i)cgroup\\.subtree_control[`'\"]?: invalid argument"),
		cause:    "the kernel passes the controller cpu to no cgroup while a real-time process is outside of the root cgroup (CONFIG_RT_GROUP_SCHED)",
		advice:   "stop the real-time processes: ps -eo pid,cls,comm | grep -E ' (FF|RR|DLN) ' lists them",
		page:     "real-time-policy",
	},
	{
		patterns: match(`(?i)(?:cgroup\.procs|/tasks)[^\n]*invalid argument`),
		when:     func(f Facts) bool { return f.RealTime },
		cause:    "Touchstone has a real-time policy, and this kernel gives new cgroups no real-time budget (CONFIG_RT_GROUP_SCHED)",
		advice:   "start Touchstone without it: chrt --other 0 touchstone …",
		page:     "real-time-policy",
	},
}
