/* The measured system calls: cheap calls of every kind that a runtime may intercept (identity, time, files, memory,
 * signals, processes). Calls that must occur in a pair (open and close, mmap and munmap) count as one.
 *
 * Calls that wait for a time (nanosleep) are excluded, and so are calls with a cost that depends on the state of the
 * machine (getdents of a directory, sync). */
#include "latency.h"

enum { PAGE = 4096 };

static long do_getpid(struct subject *s)
{
	(void)s;
	return sys_getpid();
}

static long do_getppid(struct subject *s)
{
	(void)s;
	return sys_getppid();
}

static long do_getuid(struct subject *s)
{
	(void)s;
	return sys_getuid();
}

static long do_umask(struct subject *s)
{
	(void)s;
	return sys_umask(022);
}

static long do_uname(struct subject *s)
{
	(void)s;
	struct new_utsname name;
	return sys_uname(&name);
}

static long do_getcwd(struct subject *s)
{
	(void)s;
	char buf[PATH_MAX];
	return sys_getcwd(buf, sizeof buf);
}

static long do_clock_gettime(struct subject *s)
{
	(void)s;
	struct __kernel_timespec ts;
	return sys_clock_gettime(CLOCK_MONOTONIC, &ts);
}

static long do_sched_yield(struct subject *s)
{
	(void)s;
	return sys_sched_yield();
}

static long do_getrandom(struct subject *s)
{
	(void)s;
	uint64_t r;
	return sys_getrandom(&r, sizeof r);
}

static long do_rt_sigaction(struct subject *s)
{
	(void)s;
	struct sigaction old;
	return sys_sigaction(SIGUSR1, NULL, &old);
}

static long do_rt_sigprocmask(struct subject *s)
{
	(void)s;
	sigset_t old;
	return sys_sigprocmask(SIG_BLOCK, NULL, &old);
}

/* Duplicates a pipe, like syscall.c. */
static long do_dup_close(struct subject *s)
{
	long fd = sys_dup(s->pipe[0]);
	return fd < 0 ? fd : sys_close((int)fd);
}

static long do_read_zero(struct subject *s)
{
	char byte;
	return sys_read(s->zero, &byte, 1);
}

static long do_write_null(struct subject *s)
{
	return sys_write(s->null, "x", 1);
}

static long do_read_file(struct subject *s)
{
	char bytes[PAGE];
	long e = sys_seek_set(s->file, 0);
	return e < 0 ? e : sys_read(s->file, bytes, sizeof bytes);
}

static long do_lseek(struct subject *s)
{
	return sys_seek_set(s->file, 0);
}

static long do_fstat(struct subject *s)
{
	struct stat st;
	return sys_fstat(s->file, &st);
}

static long do_stat(struct subject *s)
{
	struct stat st;
	return sys_stat(s->path, &st);
}

static long do_open_close(struct subject *s)
{
	long fd = sys_open(s->path, O_RDONLY, 0);
	return fd < 0 ? fd : sys_close((int)fd);
}

static long do_pipe(struct subject *s)
{
	char byte = 'x';
	long e = sys_write(s->pipe[1], &byte, 1);
	return e < 0 ? e : sys_read(s->pipe[0], &byte, 1);
}

static long do_ppoll(struct subject *s)
{
	struct pollfd fd = {.fd = s->pipe[0], .events = POLLIN};
	const struct __kernel_timespec at_once = {0};
	return sys_poll(&fd, 1, &at_once);
}

static long do_futex_wake(struct subject *s)
{
	return sys_futex_wake(&s->futex, 1);
}

static long do_mmap_munmap(struct subject *s)
{
	(void)s;
	long p = sys_mmap(PAGE, MAP_PRIVATE);
	return p < 0 ? p : sys_munmap(p, PAGE);
}

static long do_page_fault(struct subject *s)
{
	(void)s;
	long p = sys_mmap(PAGE, MAP_PRIVATE);
	if (p < 0)
		return p;
	*(volatile char *)p = 1;
	return sys_munmap(p, PAGE);
}

static long do_fork_wait(struct subject *s)
{
	(void)s;
	long pid = sys_fork();
	if (pid == 0)
		sys_exit(0);
	int status;
	return pid < 0 ? pid : sys_wait((int)pid, &status);
}

const struct call calls[] = {
	{"getpid", do_getpid},
	{"getppid", do_getppid},
	{"getuid", do_getuid},
	{"umask", do_umask},
	{"uname", do_uname},
	{"getcwd", do_getcwd},
	{"clock_gettime", do_clock_gettime},
	{"sched_yield", do_sched_yield},
	{"getrandom", do_getrandom},
	{"rt_sigaction", do_rt_sigaction},
	{"rt_sigprocmask", do_rt_sigprocmask},
	{"dup+close", do_dup_close},
	{"read /dev/zero", do_read_zero},
	{"write /dev/null", do_write_null},
	{"lseek+read file", do_read_file},
	{"lseek", do_lseek},
	{"fstat", do_fstat},
	{"stat", do_stat},
	{"open+close", do_open_close},
	{"write+read pipe", do_pipe},
	{"ppoll", do_ppoll},
	{"futex wake", do_futex_wake},
	{"mmap+munmap", do_mmap_munmap},
	{"mmap+touch+munmap", do_page_fault},
	{"fork+exit+wait", do_fork_wait},
};

const unsigned call_count = COUNT(calls);
