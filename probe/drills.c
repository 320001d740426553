/* drills: tries calls that a container should not be able to make, and writes the kernel's answers.
 *
 * Each drill is one system call in a process of its own, because a filter may kill the process. A call that the kernel permits has no effect:
 * its arguments are invalid, or it only opens a file or makes an object that ends with the process. A kernel checks the right before the
 * arguments, so the error of an invalid argument means that the call is permitted. The drills:
 *
 *   mount            mount(2) of a file system that does not exist; ENODEV: permitted
 *   ptrace           PTRACE_SEIZE of the parent process, which is outside of the container or not visible (ESRCH)
 *   raw socket       an ICMP socket of type SOCK_RAW
 *   packet socket    a packet socket that receives nothing
 *   load a module    init_module(2) of an empty module; ENOEXEC: permitted
 *   keys             keyctl(2) for the ID of the session's keyring; ENOKEY: permitted
 *   bpf              bpf(2) for the ID of the first program; ENOENT: permitted
 *   perf             perf_event_open(2) of a disabled clock on CPU 0 for all processes
 *   sysrq            open /proc/sysrq-trigger for writing
 *   root of another  open /proc/PID/root of process 1, or of process 2 if this one is process 1
 *   mount namespace  unshare(2) with a mount namespace
 *   user namespace   unshare(2) with a user namespace
 *
 * Each line is a fact with the answer: "permitted", the name of the error, or "killed by signal N". */
#include "probe.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>

enum { AF_PACKET = 17, SOCK_RAW = 3, IP_PROTOCOL_ICMP = 1 };

/* The process of the command, and its parent as it sees it: 0 if that is not in its PID namespace. */
static long self, parent;

static long try_mount(void) { return sys_mount("touchstone", "/", "touchstone-drill", 0, NULL); }

static long try_ptrace(void)
{
	return syscall6(__NR_ptrace, PTRACE_SEIZE, parent, 0, 0, 0, 0);
}

static long try_raw(void) { return syscall6(__NR_socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC, IP_PROTOCOL_ICMP, 0, 0, 0); }

static long try_packet(void) { return sys_socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC); }

static long try_module(void) { return syscall6(__NR_init_module, (long)"", 0, (long)"", 0, 0, 0); }

static long try_keys(void) { return sys_keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING); }

static long try_bpf(void)
{
	union bpf_attr attr = {.start_id = 0};
	return syscall6(__NR_bpf, BPF_PROG_GET_NEXT_ID, (long)&attr, sizeof attr, 0, 0, 0);
}

static long try_perf(void)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};
	return syscall6(__NR_perf_event_open, (long)&attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

static long try_sysrq(void) { return sys_open("/proc/sysrq-trigger", O_WRONLY, 0); }

static long try_root(void)
{
	return sys_open(self == 1 ? "/proc/2/root" : "/proc/1/root", O_PATH | O_DIRECTORY, 0);
}

static long try_mounts(void) { return sys_unshare(CLONE_NEWNS); }

static long try_users(void) { return sys_unshare(CLONE_NEWUSER); }

static const struct drill {
	const char *name;
	long (*call)(void);
	long granted; /* the error that also means that the call is permitted */
} drills[] = {
	{"mount", try_mount, -ENODEV},
	{"ptrace", try_ptrace, 0},
	{"raw socket", try_raw, 0},
	{"packet socket", try_packet, 0},
	{"load a module", try_module, -ENOEXEC},
	{"keys", try_keys, -ENOKEY},
	{"bpf", try_bpf, -ENOENT},
	{"perf", try_perf, 0},
	{"sysrq", try_sysrq, 0},
	{"root of another", try_root, 0},
	{"mount namespace", try_mounts, 0},
	{"user namespace", try_users, 0},
};

/* The result of a drill. It is in memory that the command shares with the process of the drill. */
static long *answer;

/* Returns the wait status of the process. */
static int perform(const struct drill *d)
{
	long pid = sys_fork();
	if (pid < 0)
		die(EXIT_FAILED, "drills", "make a process for", d->name, pid);
	if (pid == 0) {
		*answer = d->call();
		sys_exit(EXIT_OK);
	}
	int status;
	long e;
	do
		e = sys_wait((int)pid, &status);
	while (e == -EINTR);
	if (e < 0)
		die(EXIT_FAILED, "drills", "wait for the process of", d->name, e);
	return status;
}

void command_drills(char **argv)
{
	parse_all("drills", argv, NULL, 0);
	self = sys_getpid();
	parent = sys_getppid();
	answer = shared_memory("drills", sizeof *answer);
	for (size_t i = 0; i < COUNT(drills); i++) {
		const struct drill *d = &drills[i];
		const int signal = perform(d) & 0x7f;
		begin_fact(d->name);
		if (signal) {
			put(&out, "killed by signal ");
			put_number(&out, (uint64_t)signal);
		} else if (*answer >= 0 || *answer == d->granted) {
			put(&out, "permitted");
		} else {
			put_error(&out, *answer);
		}
		end_fact();
	}
	report_done();
}
