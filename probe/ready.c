/* ready: says that it runs, and waits until it is told to end. exit: ends.
 *
 * The first byte of "ready" is the first thing the program does, so that the host can take its
 * arrival for the first instruction in the container. The end of the line comes when SIGTERM
 * is handled: whoever has read the whole line can send it. */
#include "probe.h"

void command_ready(char **argv)
{
	long n = sys_write(1, "ready", 5);
	parse_all("ready", argv, NULL, 0);
	if (n < 0)
		die(EXIT_FAILED, "ready", "write to standard output", NULL, n);
	exit_on_sigterm();
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
