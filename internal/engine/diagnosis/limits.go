package diagnosis

import (
	"os"
	"strconv"
	"strings"
)

// limits are the limits of the kernel.
var limits = []rule{
	{
		patterns: match(`(?i)(inotify|fsnotify|create new watcher|cni conf monitor)[^\n]*too many open files`),
		cause:    "all inotify instances that the kernel allows this user are in use",
		advice:   "allow more: sysctl -w fs.inotify.max_user_instances=${limit}",
		refine:   raise("/proc/sys/fs/inotify/max_user_instances", 1024),
	},
	{
		patterns: match(`(?i)(inotify|fsnotify)[^\n]*no space left on device`),
		cause:    "all inotify watches that the kernel allows this user are in use",
		advice:   "allow more: sysctl -w fs.inotify.max_user_watches=${limit}",
		refine:   raise("/proc/sys/fs/inotify/max_user_watches", 524288),
	},
	{
		patterns: match(`(?i)too many open files in system`),
		cause:    "all files that the kernel allows are open",
		advice:   "allow more: sysctl -w fs.file-max=${limit}",
		refine:   raise("/proc/sys/fs/file-max", 1<<20),
	},
	{
		patterns: match(`(?i)too many open files`),
		cause:    "a process has as many open files as its limit allows",
		advice:   "raise the limit before the start of the program: ulimit -n 1048576, or LimitNOFILE= in the unit of a service",
		general:  true,
	},
	{
		patterns: match(`(?i)(session key|keyring|keyctl)[^\n]*disk quota exceeded`),
		cause:    "all kernel keys that a user may have are in use",
		advice:   "allow more: sysctl -w kernel.keys.maxkeys=${limit} kernel.keys.maxbytes=${limit}00",
		refine:   raise("/proc/sys/kernel/keys/maxkeys", 2000),
	},
	{
		patterns:  match(`(?i)(fork|clone|pthread_create|newosproc)[^\n]*resource temporarily unavailable`),
		cause:     "no more processes or threads are allowed",
		advice:    "allow the surrounding service or container more: TasksMax= of systemd, or pids.max of its cgroup",
		transient: true,
	},
	{
		patterns: match(`(?i)(?:unshare|clone|setns|user namespace|newuidmap)[^\n]*no space left on device`),
		cause:    "the kernel allows this user no more namespaces",
		advice:   "allow more: sysctl user.max_user_namespaces user.max_net_namespaces shows the limits, and sysctl -w sets them",
	},
	{
		patterns: match(`(?i)(?:cpuset|cgroup\.procs|/tasks)[^\n]*no space left on device`),
		cause:    "the cgroup has no CPUs or no memory nodes, so no process can join it",
		advice:   "look at cpuset.cpus and cpuset.mems of the cgroup and of the groups above it",
	},
	{
		patterns: match(`(?i)\bmount[^\n]*no space left on device`),
		cause:    "the mount namespace has as many mounts as the kernel allows",
		advice:   "allow more: sysctl -w fs.mount-max=${limit}",
		refine:   raise("/proc/sys/fs/mount-max", 200_000),
	},
	{
		patterns: match(`(?i)no space left on device`),
		cause:    "a file system is full",
		advice:   "free some space: df -h lists the file systems, and df -i their numbers of files",
		general:  true,
	},
}

// raise sets the value limit to twice the present limit, and at least to minimum.
func raise(file string, minimum int) func(Facts, map[string]string, string, string) (string, string) {
	return func(_ Facts, values map[string]string, cause, advice string) (string, string) {
		text, _ := os.ReadFile(file) // an unknown limit is lower than minimum
		limit, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		values["limit"] = strconv.Itoa(max(minimum, 2*limit))
		return cause, advice
	}
}
