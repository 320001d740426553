/* sequence: runs programs one after the other in a directory, and says after each how long it
 * took.
 *
 *   sequence [--dir DIR] -- PROGRAM [ARG]... [--then PROGRAM [ARG]...]...
 *
 * It is for programs of several commands (make files, work on them) whose files go with the
 * container, and for those that know no other place for their files than the current directory.
 * No program can have an argument "--then".
 *
 * The programs share standard output and error with it. When one has ended with code 0 the line
 *
 *   {"step":1,"of":3,"ns":123456789}
 *
 * follows its output: what lies between two of these lines is the output of one program, and
 * what has not the last of them is cut off. ns is the time from just before the program's
 * process was made to when it was gone. After a program that ends otherwise nothing more runs,
 * and its code is that of sequence, 128 + N if signal N killed it, 127 if it could not be run. */
#include "probe.h"

enum { EXIT_NOT_RUN = 127, EXIT_SIGNALLED = 128 };

static const char then[] = "--then";

/* Ends the arguments of the first program where those of the next begin, and returns these, or
 * NULL if it is the last. */
static char **cut(char **program)
{
	for (; *program; program++)
		if (same(*program, then)) {
			*program = NULL;
			return program + 1;
		}
	return NULL;
}

static uint64_t count(char **programs)
{
	uint64_t n = 1;
	for (; *programs; programs++)
		if (same(*programs, then))
			n++;
	return n;
}

/* The code of a program that has ended. */
static int run(char **program, char **envp)
{
	long pid = sys_fork();
	if (pid < 0)
		die(EXIT_FAILED, "sequence", "make a process for", program[0], pid);
	if (pid == 0) {
		long e = sys_execve(program[0], program, envp);
		die(EXIT_NOT_RUN, "sequence", "run", program[0], e);
	}
	int status;
	long e;
	do
		e = sys_wait((int)pid, &status);
	while (e == -EINTR);
	if (e < 0)
		die(EXIT_FAILED, "sequence", "wait for", program[0], e);
	const int signal = status & 0x7f;
	return signal ? EXIT_SIGNALLED + signal : status >> 8 & 0xff;
}

static void report(uint64_t step, uint64_t steps, uint64_t ns)
{
	put(&out, "{\"step\":");
	put_number(&out, step);
	put(&out, ",\"of\":");
	put_number(&out, steps);
	put(&out, ",\"ns\":");
	put_number(&out, ns);
	put(&out, "}\n");
	flush(&out);
}

void command_sequence(char **argv, char **envp)
{
	char *dir = NULL;
	const struct option options[] = {
		{"--dir", OPTION_TEXT, &dir, 0, 0},
	};
	char **program = parse_options("sequence", argv, options, COUNT(options));
	const uint64_t steps = count(program);
	for (char **p = program; p; p = cut(p))
		if (!*p || same(*p, then))
			usage("sequence", "a program is missing", NULL);
	exit_on_sigterm();
	if (dir) {
		long e = sys_chdir(dir);
		if (e < 0)
			die(EXIT_FAILED, "sequence", "change to", dir, e);
	}
	for (uint64_t step = 1; step <= steps; step++) {
		const uint64_t start = now_ns();
		const int code = run(program, envp);
		const uint64_t ns = now_ns() - start;
		if (code != 0) {
			put(&err, "sequence: step ");
			put_number(&err, step);
			put(&err, " of ");
			put_number(&err, steps);
			put(&err, ", ");
			put(&err, program[0]);
			put(&err, ", ended with code ");
			put_number(&err, (uint64_t)code);
			put(&err, "\n");
			flush(&err);
			sys_exit(code);
		}
		report(step, steps, ns);
		while (*program)
			program++;
		program++; /* what cut has ended */
	}
	sys_exit(EXIT_OK);
}
