/* tick: writes a line "tick N" every --ms, with N from 1, until SIGTERM.
 *
 * A benchmark stops it and lets it continue: a stopped process writes nothing, and a process that runs writes again. It sleeps
 * between two lines, so that it takes nearly no CPU time. The first line comes at once. */
#include "probe.h"

void command_tick(char **argv)
{
	uint64_t ms = 0;
	const struct option options[] = {
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
	};
	parse_all("tick", argv, options, COUNT(options));
	if (!ms)
		usage("tick", "an option is missing:", "--ms");
	exit_on_sigterm(false);
	for (uint64_t n = 1;; n++) {
		put(&out, "tick ");
		put_number(&out, n);
		put(&out, "\n");
		flush(&out);
		/* The kernel writes the remaining time into it, so each call needs its own. */
		struct __kernel_timespec pause = {.tv_sec = (int64_t)(ms / 1000), .tv_nsec = (int64_t)(ms % 1000 * 1000000)};
		sys_poll(NULL, 0, &pause);
	}
}
