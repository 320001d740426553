/* confinement: writes the rights of other processes on the host, as the kernel tells them to a process of root.
 *
 *	confinement PID...
 *
 * Facts of each process, in this order:
 *
 *   process        its ID and its name
 *   capabilities   the effective ones, from /proc/PID/status
 *   no_new_privs, seccomp
 *                  as there
 *   users          /proc/PID/uid_map
 *   filter         the instructions of a seccomp filter as hexadecimal digits: code (4), jumps (2 each), value (8); a fact for each filter, the newest first
 *
 * A fact that the kernel does not tell has the error as its text; ESRCH is the error of a process that has exited. Filters are read with ptrace(2), which stops
 * the first thread of the process for less than a millisecond. The kernel gives filters only to root, and not if this program has a filter itself. */
#include "probe.h"

#include <linux/filter.h>
#include <linux/ptrace.h>

enum { WALL = 0x40000000, INSTRUCTIONS_MAX = 4096 };

static const char command[] = "confinement";

static char text[16384];

/* Returns the path of a file of the process. */
static const char *file_of(const char *pid, const char *name)
{
	static char path[64];
	const char *parts[] = {"/proc/", pid, name};
	size_t n = 0;
	for (size_t i = 0; i < COUNT(parts); i++)
		for (const char *p = parts[i]; *p && n < sizeof path - 1; p++)
			path[n++] = *p;
	path[n] = 0;
	return path;
}

/* Reads a file into text. Returns its length or the error. */
static long read_file(const char *path)
{
	long fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	long n, size = 0;
	while ((n = sys_read((int)fd, text + size, sizeof text - 1 - (size_t)size)) > 0)
		size += n;
	sys_close((int)fd);
	text[size] = 0;
	return n < 0 ? n : size;
}

/* Writes the value of a line of /proc/PID/status, which is in text. */
static void fact_line(const char *name, const char *key)
{
	for (const char *line = text; *line; line++) {
		const char *value = line, *k = key;
		while (*k && *value == *k)
			value++, k++;
		if (!*k) {
			while (*value == '\t' || *value == ' ')
				value++;
			size_t n = 0;
			while (value[n] && value[n] != '\n')
				n++;
			report_text(name, value, n);
			return;
		}
		while (line[0] && line[1] && *line != '\n')
			line++;
	}
	report_number(name, -ENOENT);
}

static void write_filters(int pid)
{
	static struct sock_filter instructions[INSTRUCTIONS_MAX];
	for (long index = 0;; index++) {
		long n = syscall6(__NR_ptrace, PTRACE_SECCOMP_GET_FILTER, pid, index, 0, 0, 0);
		if (n == -ENOENT || (n == -EINVAL && index == 0)) /* EINVAL: it has no filter */
			return;
		if (n > INSTRUCTIONS_MAX)
			n = -E2BIG;
		if (n >= 0)
			n = syscall6(__NR_ptrace, PTRACE_SECCOMP_GET_FILTER, pid, index, (long)instructions, 0, 0);
		if (n < 0) {
			report_number("filter", n);
			return;
		}
		begin_fact("filter");
		for (long i = 0; i < n; i++) {
			put_hex(&out, instructions[i].code, 4);
			put_hex(&out, instructions[i].jt, 2);
			put_hex(&out, instructions[i].jf, 2);
			put_hex(&out, instructions[i].k, 8);
		}
		end_fact();
	}
}

/* Stops the process, writes its filters, and lets it go on. */
static void stop_for_filters(int pid)
{
	long e = syscall6(__NR_ptrace, PTRACE_SEIZE, pid, 0, 0, 0, 0);
	if (e == 0)
		e = syscall6(__NR_ptrace, PTRACE_INTERRUPT, pid, 0, 0, 0, 0);
	if (e < 0) {
		report_number("filter", e);
		return;
	}
	int status;
	do
		e = syscall6(__NR_wait4, pid, (long)&status, WALL, 0, 0, 0);
	while (e == -EINTR);
	if (e < 0 || (status & 0xff) != 0x7f) { /* it has exited */
		report_number("filter", e < 0 ? e : -ESRCH);
		return;
	}
	write_filters(pid);
	/* A signal that came before the stop is delivered. */
	const int event = status >> 16, signal = status >> 8 & 0xff;
	syscall6(__NR_ptrace, PTRACE_DETACH, pid, 0, event ? 0 : signal, 0, 0);
}

void command_confinement(char **argv)
{
	if (!*argv)
		usage(command, "the processes are missing", NULL);
	for (; *argv; argv++) {
		uint64_t pid;
		if (!parse_number(*argv, &pid) || pid == 0 || pid > INT32_MAX)
			usage(command, "no process has the ID", *argv);
		long n = read_file(file_of(*argv, "/comm"));
		begin_fact("process");
		put_number(&out, pid);
		put(&out, " ");
		if (n < 0)
			put_error(&out, n);
		else
			put_escaped(&out, text, n > 0 ? (size_t)n - 1 : 0);
		end_fact();
		if (n < 0)
			continue;
		n = read_file(file_of(*argv, "/status"));
		if (n < 0)
			text[0] = 0;
		fact_line("capabilities", "CapEff:");
		fact_line("no_new_privs", "NoNewPrivs:");
		fact_line("seccomp", "Seccomp:");
		n = read_file(file_of(*argv, "/uid_map"));
		if (n < 0)
			report_number("users", n);
		else
			report_text("users", text, (size_t)(n > 0 ? n - 1 : 0));
		stop_for_filters((int)pid);
	}
	report_done();
}
