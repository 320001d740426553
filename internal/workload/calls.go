package workload

// Calls lists the system calls that the program of Latency measures, in its order.
func Calls() []string {
	return []string{
		"getpid", "getppid", "getuid", "umask", "uname", "getcwd", "clock_gettime", "sched_yield", "getrandom",
		"rt_sigaction", "rt_sigprocmask", "dup+close", "read /dev/zero", "write /dev/null", "lseek+read file", "lseek",
		"fstat", "stat", "open+close", "write+read pipe", "ppoll", "futex wake", "mmap+munmap", "mmap+touch+munmap",
		"fork+exit+wait",
	}
}
