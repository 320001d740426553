/* syscall: the "mix" of UnixBench's syscall test. A loop is close(dup(0)), getpid(), getuid(),
 * umask(022): five system calls.
 *
 * LoopsPerSecond is the sum over the copies of each copy's loops over its own time. Index is
 * UnixBench's: its reference machine does 15000 loops a second and has index 10, so that Index
 * = LoopsPerSecond / 1500. */
#include "probe.h"

enum { LOOPS };

static long mix(struct worker *w)
{
	uint64_t loops = 0;
	while (!over()) {
		long fd = sys_dup(0);
		if (fd < 0) {
			w->failed = "dup(0)";
			return fd;
		}
		sys_close((int)fd);
		sys_getpid();
		sys_getuid();
		sys_umask(022);
		loops++;
	}
	w->counts[LOOPS] = loops;
	return 0;
}

/* The mix duplicates descriptor 0, which a container may not have. */
static void ensure_descriptor_0(void)
{
	long fd = sys_dup(0);
	if (fd >= 0) {
		sys_close((int)fd);
		return;
	}
	fd = sys_open("/dev/null", O_RDONLY, 0);
	if (fd < 0)
		die(EXIT_FAILED, "syscall", "open in place of standard input", "/dev/null", fd);
	if (fd != 0)
		die(EXIT_FAILED, "syscall", "descriptor 0 is open but cannot be duplicated", NULL, 0);
}

void command_syscall(char **argv)
{
	uint64_t copies = 1, ms = 1000;
	const struct option options[] = {
		{"--copies", OPTION_NUMBER, &copies, 1, TEAM_MAX},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
	};
	parse_all("syscall", argv, options, COUNT(options));
	ensure_descriptor_0();

	struct team team = {.command = "syscall", .size = (unsigned)copies, .ms = ms, .work = mix};
	struct worker *bad = team_run(&team);
	if (bad)
		die(EXIT_FAILED, "syscall", bad->failed, NULL, bad->error);
	double rate = team_rate(&team, LOOPS);
	report_metric("LoopsPerSecond", rate, "1/s");
	report_metric("Index", rate / 1500, "score");
	report_done();
}
