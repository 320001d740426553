/* sequence: runs programs one after the other in a directory, and writes the duration of each.
 *
 *   sequence [--dir DIR] -- PROGRAM [ARG]... [--then PROGRAM [ARG]...]...
 *
 * It is for benchmarks with several commands (create files, work on them) whose files are removed with the container, and
 * for programs that can store files only in the current directory. No program can have an argument "--then".
 *
 * The programs share its standard output and error. After a program has exited with code 0, sequence writes a line:
 *
 *   {"step":1,"of":3,"ns":123456789}
 *
 * The text between two of these lines is the output of one program. Without the last line the output is truncated. ns is the
 * time from just before the fork until the process was reaped. If a program fails, sequence runs no further program and
 * exits with the same code, with 128 + N if signal N killed the program, or with 127 if it could not be executed. */
#include "probe.h"

enum { EXIT_NOT_RUN = 127, EXIT_SIGNALLED = 128 };

static const char then[] = "--then";

/* Terminates the arguments of the first program at "--then", and returns the arguments of the next program, or NULL if the
 * program is the last. */
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

/* Returns the exit code for a wait status. */
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
	exit_on_sigterm(false);
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
		program++; /* skip the NULL that cut has written */
	}
	sys_exit(EXIT_OK);
}
