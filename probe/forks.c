/* forks: a fork bomb that stays inside a limit of processes.
 *
 *	forks --most N --ms MS [--once]
 *
 * It forks processes that wait, until the kernel refuses one (EAGAIN), and thereby finds the limit. With --once it exits
 * then. Otherwise it goes on for MS milliseconds: again and again it tries to exceed the limit, ends its oldest process and
 * forks another one. It writes lines
 *
 *	forks TOTAL live LIVE refused REFUSED
 *
 * the first when it has found the limit, then one about every 50 ms, and none before the limit is found.
 *
 * It never has more than N processes. If it has N and the kernel has refused none, there is no limit, and it exits with
 * code 3 at once. All processes end with the first one, and by themselves after MS milliseconds. */
#include "probe.h"

enum { MOST = 8192, EXIT_NO_LIMIT = 3, LINE_NS = 50000000 };

static uint32_t pids[MOST]; /* a ring: the oldest is at first */
static uint64_t first, live, total, refused;

_Noreturn static void wait_for_end(long parent, uint64_t ms)
{
	const struct __kernel_timespec longest = {.tv_sec = (long)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	if (sys_prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && sys_getppid() == parent)
		sys_poll(NULL, 0, &longest);
	sys_exit(EXIT_OK);
}

/* one reports whether the kernel has granted another process. */
static bool one(uint64_t ms)
{
	long parent = sys_getpid();
	long pid = sys_fork();
	if (pid == 0)
		wait_for_end(parent, ms);
	if (pid == -EAGAIN) {
		refused++;
		return false;
	}
	if (pid < 0)
		die(EXIT_FAILED, "forks", "fork", NULL, pid);
	pids[(first + live++) % MOST] = (uint32_t)pid;
	total++;
	return true;
}

static void end_oldest(void)
{
	int pid = (int)pids[first];
	first = (first + 1) % MOST;
	live--;
	sys_kill(pid, SIGKILL);
	int status;
	long e;
	do
		e = sys_wait(pid, &status);
	while (e == -EINTR);
	if (e < 0)
		die(EXIT_FAILED, "forks", "wait for a process", NULL, e);
}

static void tell(void)
{
	put(&out, "forks ");
	put_number(&out, total);
	put(&out, " live ");
	put_number(&out, live);
	put(&out, " refused ");
	put_number(&out, refused);
	put(&out, "\n");
	flush(&out);
}

void command_forks(char **argv)
{
	uint64_t most = 0, ms = 0;
	bool once = false;
	const struct option options[] = {
		{"--most", OPTION_NUMBER, &most, 1, MOST},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
		{"--once", OPTION_FLAG, &once, 0, 0},
	};
	parse_all("forks", argv, options, COUNT(options));
	if (!most || !ms)
		usage("forks", "an option is missing:", most ? "--ms" : "--most");
	uint64_t start = now_ns(), told = start;
	while (one(ms))
		if (live == most)
			die(EXIT_NO_LIMIT, "forks", "no limit refuses another process", NULL, 0);
	if (!live)
		die(EXIT_FAILED, "forks", "fork", NULL, -EAGAIN);
	tell();
	while (!once) {
		uint64_t now = now_ns();
		if (now - start >= ms * 1000000)
			break;
		if (now - told >= LINE_NS) {
			tell();
			told = now;
		}
		if (live < most && one(ms))
			continue; /* another process of the cgroup has ended */
		if (live)
			end_oldest();
		if (live < most)
			one(ms);
	}
	sys_exit(EXIT_OK);
}
