/* ready: writes "ready" and waits for SIGTERM. With --signal it writes a line "signal" when SIGTERM arrives, as its last action, so that
 * the time of the line is the time of the signal and of the exit. exit: exits.
 *
 * The first byte of "ready" is the program's first action. So the host can use its arrival as the time of the first
 * instruction in the container. The program writes the end of the line when it handles SIGTERM: a reader of the whole
 * line can send the signal. */
#include "probe.h"

void command_ready(char **argv)
{
	long n = sys_write(1, "ready", 5);
	bool writes = false;
	const struct option options[] = {{"--signal", OPTION_FLAG, &writes, 0, 0}};
	parse_all("ready", argv, options, COUNT(options));
	if (n < 0)
		die(EXIT_FAILED, "ready", "write to standard output", NULL, n);
	exit_on_sigterm(writes);
	put(&out, "\n");
	flush(&out);
	for (;;)
		sys_poll(NULL, 0, NULL);
}

void command_exit(char **argv)
{
	uint64_t code = 0;
	if (argv[0] && (!parse_number(argv[0], &code) || code > 255))
		usage("exit", "CODE must be a whole number from 0 to 255, not", argv[0]);
	if (argv[0] && argv[1])
		usage("exit", "unexpected argument", argv[1]);
	sys_exit((int)code);
}
