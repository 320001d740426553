/* bareloop repeats the life of a container by the runtime's command line and does nothing else. Touchstone's own
 * overhead is measured against it (scripts/bench-overhead.sh; docs/overhead.md).
 *
 *	bareloop [-c PREFIX] [-g DIR]... [-o DIR]... RHYTHM RUNTIME WORDS
 *
 * RUNTIME is the binary. WORDS is a directory with the arguments of the four commands, one a line, in the files
 * create, start, kill and delete. It also holds config.json and the directory bundle, which create names. bareloop
 * replaces every @GROUP@ in config.json by the lifecycle's own cgroup and writes the result into bundle. create leaves
 * the file pid there. Each -g names a directory of a cgroup hierarchy. A lifecycle gets the child tN of it, and the
 * runtime's processes the child tN/host, as in a trial of Touchstone. Each -o names a directory of a hierarchy that only
 * the container joins. PREFIX comes before /tN in the place of @GROUP@.
 *
 * For each lifecycle bareloop prints one line: the nanoseconds of create, start and destroy on CLOCK_MONOTONIC. Destroy
 * is kill, the wait for the exit of the container's process, and delete. The work before and between the commands
 * (cgroups, config.json, pipes, the file pid) is not timed. One lifecycle before the first line warms up.
 *
 * RHYTHM is a file with one line for each lifecycle: the microseconds from the end of the create before to the begin of
 * its own create. bareloop waits as long, or as long as its work takes. The rhythm decides about the time of create. A
 * runtime on cgroup v1 moves the container's process to its cgroups. The kernel delays the first move by a grace period
 * of RCU (cgroup_threadgroup_rwsem is a percpu_rw_semaphore). A move that follows soon after the moves of the container
 * before does not wait. The share of the creates that wait grows with the time between two creates.
 *
 * bareloop waits for events only: the exit of a command, the first byte on the container's standard output, and the
 * exit of the container's process, which it adopts as subreaper. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORDS = 64, MAX_GROUPS = 32, MAX_LIFECYCLES = 10000 };

static _Noreturn void die(const char *format, ...)
{
	int e = errno;
	va_list args;
	va_start(args, format);
	fputs("bareloop: ", stderr);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", e ? strerror(e) : "that is wrong");
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static __attribute__((format(printf, 2, 3))) char *path(char *to, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(to, PATH_MAX, format, args);
	va_end(args);
	if (n < 0 || n >= PATH_MAX) {
		errno = ENAMETOOLONG;
		die("make a path");
	}
	return to;
}

static char *read_file(const char *name)
{
	static const size_t limit = 1 << 20;
	FILE *f = fopen(name, "r");
	if (!f)
		die("open %s", name);
	char *text = malloc(limit);
	if (!text)
		die("read %s", name);
	size_t n = fread(text, 1, limit - 1, f);
	if (ferror(f))
		die("read %s", name);
	text[n] = 0;
	fclose(f);
	return text;
}

static void write_file(const char *name, int flags, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		die("open %s", name);
	size_t n = strlen(text);
	if (write(fd, text, n) != (ssize_t)n)
		die("write %s", name);
	close(fd);
}

/* A command is the runtime with the words of a file. */
struct command {
	char *argv[MAX_WORDS + 2];
};

static struct command read_command(char *runtime, const char *dir, const char *verb)
{
	struct command c = {.argv = {runtime}};
	char name[PATH_MAX];
	int n = 1;
	char *rest = read_file(path(name, "%s/%s", dir, verb));
	for (char *word; (word = strsep(&rest, "\n")) && *word; n++) {
		if (n > MAX_WORDS) {
			errno = E2BIG;
			die("read %s", name);
		}
		c.argv[n] = word;
	}
	if (n == 1) {
		errno = 0;
		die("%s holds no words", name);
	}
	return c;
}

/* Runs a command with the given standard output and error, and waits for its exit. Between fork and exec the child does
 * the same as the child of a shell. vfork avoids a copy of our page tables, as Go's own fork does. */
static void run(const struct command *c, int out, int err)
{
	pid_t pid = vfork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		setpgid(0, 0);
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		execv(c->argv[0], c->argv);
		_exit(127);
	}
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("wait for %s", c->argv[0]);
	if (status != 0) {
		char words[4096] = "";
		for (char *const *word = c->argv; *word; word++)
			snprintf(words + strlen(words), sizeof words - strlen(words), "%s ", *word);
		errno = 0;
		die("%sended with status 0x%x", words, status);
	}
}

/* The parents of the lifecycles' cgroup directories. */
struct dirs {
	const char *dir[MAX_GROUPS];
	int n;
};
static struct dirs joined, others;

static void add(struct dirs *d, const char *dir)
{
	if (d->n == MAX_GROUPS) {
		errno = E2BIG;
		die("remember the cgroup %s", dir);
	}
	d->dir[d->n++] = dir;
}

static void join(const char *dir)
{
	char name[PATH_MAX];
	path(name, "%s/tasks", dir);
	if (access(name, W_OK) != 0) /* the unified tree has no tasks */
		path(name, "%s/cgroup.procs", dir);
	write_file(name, 0, "0");
}

static void make_groups(int n)
{
	char dir[PATH_MAX];
	for (int i = 0; i < joined.n; i++) {
		if (mkdir(path(dir, "%s/t%d", joined.dir[i], n), 0755) != 0 && errno != EEXIST)
			die("make %s", dir);
		char controllers[PATH_MAX];
		path(controllers, "%s/cgroup.subtree_control", dir);
		if (access(controllers, W_OK) == 0) {
			char *have = read_file(path((char[PATH_MAX]){0}, "%s/cgroup.controllers", dir));
			const char *want[] = {"cpu", "memory", "pids"};
			for (size_t w = 0; w < sizeof want / sizeof *want; w++)
				if (strstr(have, want[w]))
					write_file(controllers, 0, path((char[PATH_MAX]){0}, "+%s", want[w]));
			free(have);
		}
		if (mkdir(path(dir, "%s/t%d/host", joined.dir[i], n), 0755) != 0)
			die("make %s", dir);
		join(dir);
	}
}

static void remove_groups(int n)
{
	char dir[PATH_MAX];
	for (int i = 0; i < joined.n; i++) {
		join(path(dir, "%s/host", joined.dir[i]));
		if (rmdir(path(dir, "%s/t%d/host", joined.dir[i], n)) != 0 || rmdir(path(dir, "%s/t%d", joined.dir[i], n)) != 0)
			die("remove %s", dir);
	}
	for (int i = 0; i < others.n; i++)
		if (rmdir(path(dir, "%s/t%d", others.dir[i], n)) != 0 && errno != ENOENT)
			die("remove %s", dir);
}

static void write_config(const char *template, const char *bundle, const char *prefix, int n)
{
	static const char mark[] = "@GROUP@";
	char name[PATH_MAX], group[PATH_MAX];
	path(group, "%s/t%d", prefix, n);
	FILE *f = fopen(path(name, "%s/config.json", bundle), "w");
	if (!f)
		die("open %s", name);
	for (const char *at; (at = strstr(template, mark)); template = at + sizeof mark - 1)
		fprintf(f, "%.*s%s", (int)(at - template), template, group);
	if (fputs(template, f) < 0 || fclose(f) != 0)
		die("write %s", name);
}

static pid_t read_pid(const char *bundle)
{
	char name[PATH_MAX];
	char *text = read_file(path(name, "%s/pid", bundle));
	pid_t pid = (pid_t)strtol(text, NULL, 10);
	free(text);
	if (pid <= 1) {
		errno = 0;
		die("%s holds no pid", name);
	}
	return pid;
}

struct words {
	struct command create, start, kill, delete;
};

static void sleep_until(int64_t ns)
{
	struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static int64_t rhythm[MAX_LIFECYCLES]; /* in nanoseconds */

/* Reads the rhythm and returns the number of lifecycles. */
static int read_rhythm(const char *name)
{
	char *text = read_file(name), *rest = text;
	int n = 0;
	for (char *line, *end; (line = strsep(&rest, "\n")) && *line; n++) {
		if (n == MAX_LIFECYCLES) {
			errno = E2BIG;
			die("read %s", name);
		}
		rhythm[n] = strtoll(line, &end, 10) * 1000;
		if (*end || rhythm[n] <= 0) {
			errno = EINVAL;
			die("read the line \"%s\" of %s", line, name);
		}
	}
	free(text);
	if (n == 0) {
		errno = 0;
		die("%s holds no lifecycle", name);
	}
	return n;
}

/* Returns the end of create. */
static int64_t lifecycle(const struct words *w, const char *bundle, int null, bool print)
{
	int out[2], err[2];
	if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
		die("make a pipe");
	int64_t began = now_ns();
	run(&w->create, out[1], err[1]);
	int64_t created = now_ns();
	close(out[1]);
	close(err[1]);
	pid_t pid = read_pid(bundle);
	int64_t starting = now_ns();
	run(&w->start, null, null);
	int64_t started = now_ns();

	char byte;
	if (read(out[0], &byte, 1) != 1) {
		errno = 0;
		die("the container's process wrote nothing");
	}

	int64_t killing = now_ns();
	run(&w->kill, null, null);
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("wait for the container's process %d", (int)pid);
	run(&w->delete, null, null);
	int64_t deleted = now_ns();
	close(out[0]);
	close(err[0]);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
		errno = 0;
		die("the container's process ended with status 0x%x instead of by the kill", status);
	}
	if (print)
		printf("%lld %lld %lld\n", (long long)(created - began), (long long)(started - starting), (long long)(deleted - killing));
	return created;
}

int main(int argc, char **argv)
{
	const char *prefix = "";
	for (int option; (option = getopt(argc, argv, "c:g:o:")) != -1;) {
		switch (option) {
		case 'c':
			prefix = optarg;
			break;
		case 'g':
			add(&joined, optarg);
			break;
		case 'o':
			add(&others, optarg);
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 3) {
		fputs("usage: bareloop [-c PREFIX] [-g DIR]... [-o DIR]... RHYTHM RUNTIME WORDS\n", stderr);
		return 2;
	}
	int count = read_rhythm(argv[optind]);
	char *runtime = argv[optind + 1], *dir = argv[optind + 2];
	struct words words = {
		.create = read_command(runtime, dir, "create"),
		.start = read_command(runtime, dir, "start"),
		.kill = read_command(runtime, dir, "kill"),
		.delete = read_command(runtime, dir, "delete"),
	};
	char bundle[PATH_MAX], name[PATH_MAX];
	path(bundle, "%s/bundle", dir);
	char *template = read_file(path(name, "%s/config.json", dir));
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		die("open /dev/null");
	dup2(null, STDIN_FILENO);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		die("become a child subreaper");
	int64_t created = 0, preparing = 0;
	for (int n = 0; n <= count; n++) {
		bool warmup = n == 0;
		if (!warmup)
			sleep_until(created + rhythm[n - 1] - preparing);
		int64_t began = now_ns();
		make_groups(n);
		write_config(template, bundle, prefix, n);
		preparing = now_ns() - began;
		created = lifecycle(&words, bundle, null, !warmup);
		remove_groups(n);
	}
	free(template);
	return 0;
}
