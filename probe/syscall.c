/* syscall: the "mix" of UnixBench's syscall test. A loop has five system calls: close(dup(fd)), getpid(), getuid(),
 * umask(022).
 *
 * The program duplicates its own pipe. UnixBench duplicates descriptor 0, as does --stdin, but that is a different file on each target. On bare
 * metal it is usually the host's /dev/null, and each close costs some 100 ns more while a process on the host holds a lock on
 * it. Containers have their own /dev/null, so they would seem faster than bare metal.
 *
 * LoopsPerSecond is the sum of the copies' rates: loops divided by the copy's own time. Index is UnixBench's: the reference
 * machine executes 15000 loops per second and has index 10, so Index = LoopsPerSecond / 1500. */
#include "probe.h"

enum { LOOPS };

static int subject; /* the descriptor that is duplicated */

static long mix(struct worker *w)
{
	uint64_t loops = 0;
	while (!over()) {
		long fd = sys_dup(subject);
		if (fd < 0) {
			w->failed = "dup";
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

void command_syscall(char **argv)
{
	uint64_t copies = 1, ms = 1000;
	bool from_stdin = false;
	const struct option options[] = {
		{"--copies", OPTION_NUMBER, &copies, 1, TEAM_MAX},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
		{"--stdin", OPTION_FLAG, &from_stdin, 0, 0},
	};
	parse_all("syscall", argv, options, COUNT(options));
	if (!from_stdin) {
		int ends[2];
		long e = sys_pipe(ends);
		if (e < 0)
			die(EXIT_FAILED, "syscall", "make a pipe", NULL, e);
		subject = ends[0];
	}

	struct team team = {.command = "syscall", .size = (unsigned)copies, .ms = ms, .work = mix};
	struct worker *bad = team_run(&team);
	if (bad)
		die(EXIT_FAILED, "syscall", bad->failed, NULL, bad->error);
	double rate = team_rate(&team, LOOPS);
	report_metric("LoopsPerSecond", rate, "1/s");
	report_metric("Index", rate / 1500, "score");
	report_done();
}
