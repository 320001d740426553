/* The adapter: a wrapper of an OCI runtime, for engines that accept a binary but no flags for it.
 *
 * A copy of the probe is an adapter if its file name begins with "runtime-". The configuration is the file with
 * the same name and ".conf". Each line is one of:
 *   binary PATH           execute this runtime in place of the adapter
 *   flag TEXT             insert TEXT before the arguments; may be repeated
 *   hide PREFIX           hide annotations whose names begin with PREFIX; may be repeated
 *   score NUMBER          replace a negative OOM score by this one of at most four digits
 *   over TEXT             if a kill fails with TEXT, the container has exited
 *   sleep VERB NS         sleep for NS nanoseconds before each call of VERB
 *   burn VERB NS          use NS nanoseconds of CPU time before each call of VERB
 *
 * The last two make a runtime that is slower by a known time, to check what a measurement finds. The verb is the first argument with the
 * name of a runtime's command.
 *
 * To hide an annotation, the adapter replaces the first letter of its name in the bundle's config.json with an x
 * before the runtime's create. gVisor needs this: with an annotation of CRI (io.kubernetes.cri…) it treats the
 * container as part of a pod's sandbox, and only gVisor's own shim can start that.
 *
 * CRI-O gives a pause container an OOM score that a runtime may set only with CAP_SYS_RESOURCE. The adapter overwrites it in the
 * bundle's config.json before the runtime's create. Blanks fill the place.
 *
 * containerd's shim accepts a failed kill of an exited container only if the error has runc's text, "container not
 * running". gVisor has other texts. For a kill the adapter keeps running and translates the error. It passes on the last
 * 8 to 16 KiB of a longer standard error, because a runtime's error is at the end.
 *
 * A failure is exit code 126, and 127 if the runtime itself cannot be run. */
#include "probe.h"

enum { EXIT_NOT_PREPARED = 126, EXIT_NOT_RUN = 127 };

enum { CONF_MAX = 16384, BUNDLE_MAX = 4 << 20, ARGUMENTS_MAX = 512 };

_Noreturn static void fail(const char *what, const char *subject, long error)
{
	die(EXIT_NOT_PREPARED, "adapter", what, subject, error);
}

static bool begins(const char *text, const char *prefix)
{
	while (*prefix)
		if (*text++ != *prefix++)
			return false;
	return true;
}

static char conf_name[PATH_MAX];

bool is_adapter(void)
{
	static const char end[] = ".conf";
	long n = sys_readlink("/proc/self/exe", conf_name, sizeof conf_name - sizeof end);
	if (n <= 0)
		return false;
	const char *base = conf_name;
	for (const char *p = conf_name; p < conf_name + n; p++)
		if (*p == '/')
			base = p + 1;
	for (size_t i = 0; i < sizeof end; i++)
		conf_name[n + (long)i] = end[i];
	return begins(base, "runtime-");
}

/* Reads the whole file, at most max - 1 bytes, and appends a zero. */
static size_t read_all(int fd, const char *name, char *buf, size_t max)
{
	size_t n = 0;
	for (;;) {
		long got = sys_read(fd, buf + n, max - 1 - n);
		if (got == -EINTR)
			continue;
		if (got < 0)
			fail("read", name, got);
		if (got == 0)
			break;
		n += (size_t)got;
		if (n == max - 1)
			fail("read: too long", name, 0);
	}
	buf[n] = 0;
	return n;
}

/* Returns the value of --bundle or -b, or NULL without one. */
static const char *bundle_of(char **argv)
{
	static const char flag[] = "--bundle=";
	for (; *argv; argv++) {
		if (begins(*argv, flag))
			return *argv + sizeof flag - 1;
		if (same(*argv, "--bundle") || same(*argv, "-b") || same(*argv, "-bundle"))
			return argv[1];
	}
	return NULL;
}

static void overwrite(int fd, const char *name, size_t at, const char *text, size_t n)
{
	long e = sys_seek_set(fd, (long)at);
	if (e >= 0)
		e = sys_write(fd, text, n);
	if (e < 0)
		fail("write", name, e);
}

/* Overwrites the number at p, after blanks, if it is negative and has at least as many characters as the score. */
static void replace_score(int fd, const char *name, const char *config, const char *p, const char *score)
{
	static const char blanks[] = "       ";
	size_t n = 0, digits = length(score);
	while (*p == ' ')
		p++;
	while (p[n] == '-' || (p[n] >= '0' && p[n] <= '9'))
		n++;
	if (*p != '-' || n < digits || n - digits >= sizeof blanks)
		return;
	overwrite(fd, name, (size_t)(p - config), blanks, n - digits);
	overwrite(fd, name, (size_t)(p - config) + n - digits, score, digits);
}

static void change_bundle(const char *bundle, const struct list *prefixes, const char *score)
{
	static char name[PATH_MAX + 16], config[BUNDLE_MAX];
	static const char file[] = "/config.json", oom_key[] = "oomScoreAdj\":";
	size_t n = length(bundle);
	if (n > PATH_MAX)
		fail("open the bundle", bundle, -ENAMETOOLONG);
	for (size_t i = 0; i < n; i++)
		name[i] = bundle[i];
	for (size_t i = 0; i < sizeof file; i++)
		name[n + i] = file[i];
	long fd = sys_open(name, O_RDWR, 0);
	if (fd < 0)
		fail("open", name, fd);
	size_t size = read_all((int)fd, name, config, sizeof config);
	for (char *p = config; p < config + size; p++) {
		if (*p != '"')
			continue;
		for (size_t i = 0; i < prefixes->n; i++) {
			if (begins(p + 1, prefixes->items[i]))
				overwrite((int)fd, name, (size_t)(p + 1 - config), "x", 1);
		}
		if (score && begins(p + 1, oom_key))
			replace_score((int)fd, name, config, p + sizeof oom_key, score);
	}
	sys_close((int)fd);
}

static bool contains(const char *text, const char *part)
{
	for (; *text; text++)
		if (begins(text, part))
			return true;
	return false;
}

/* Reads a stream to its end. Keeps the last part of it in the buffer, with a zero at the end, and returns the length. Zeros
 * in the stream become spaces. Reports in found whether the stream contains a text, which is shorter than half the buffer. */
static size_t read_end(int fd, char *buf, size_t max, const char *text, bool *found)
{
	size_t n = 0, half = max / 2;
	for (;;) {
		long got = sys_read(fd, buf + n, max - 1 - n);
		if (got == -EINTR)
			continue;
		if (got < 0)
			fail("read", "the standard error of the runtime", got);
		for (size_t i = n; i < n + (size_t)got; i++)
			if (!buf[i])
				buf[i] = ' ';
		n += (size_t)got;
		buf[n] = 0;
		if (got > 0 && n < max - 1)
			continue;
		*found = *found || contains(buf, text);
		if (got == 0)
			return n;
		for (size_t i = 0; i < half; i++)
			buf[i] = buf[n - half + i];
		n = half;
	}
}

/* Runs a kill and exits with its status. Translates the error for an exited container. */
_Noreturn static void kill_translated(char **arguments, char **envp, const char *over)
{
	static char said[CONF_MAX];
	int pipe[2], status = 0;
	bool ended = false;
	long e = sys_pipe(pipe);
	if (e < 0)
		fail("make a pipe", NULL, e);
	long pid = sys_fork();
	if (pid < 0)
		fail("fork", NULL, pid);
	if (pid == 0) {
		if ((e = sys_dup_to(pipe[1], 2)) < 0)
			fail("write to the pipe", NULL, e);
		e = sys_execve(arguments[0], arguments, envp);
		die(EXIT_NOT_RUN, "adapter", "run", arguments[0], e);
	}
	sys_close(pipe[1]);
	size_t n = read_end(pipe[0], said, sizeof said, over, &ended);
	do
		e = sys_wait((int)pid, &status);
	while (e == -EINTR);
	if (e < 0)
		fail("wait for", arguments[0], e);
	if (status && ended) {
		put(&err, "container not running\n");
		flush(&err);
		sys_exit(EXIT_FAILED);
	}
	sys_write(2, said, n);
	sys_exit(status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff);
}

/* Returns the first argument that is a command of a runtime, or NULL. */
static const char *verb_of(char **argv)
{
	static const char *const verbs[] = {"create", "start", "exec", "kill", "delete", "state", "pause", "resume", "update"};
	for (; *argv; argv++)
		for (size_t i = 0; i < COUNT(verbs); i++)
			if (same(*argv, verbs[i]))
				return verbs[i];
	return NULL;
}

/* Returns the time of CLOCK_PROCESS_CPUTIME_ID. */
static uint64_t cpu_ns(void)
{
	struct __kernel_timespec ts;
	long e = sys_clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	if (e < 0)
		fail("read", "the CPU time", e);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Delays a call if its verb is the first word of text. The second word is a number of nanoseconds, at most a minute. */
static void delay(const char *verb, char *text, bool burn)
{
	static const uint64_t most = 60000000000;
	char *number = text;
	uint64_t ns;
	while (*number && *number != ' ')
		number++;
	if (*number)
		*number++ = 0;
	if (!parse_number(number, &ns) || ns > most)
		fail("read: not a number of nanoseconds up to a minute:", number, 0);
	if (!verb || !same(verb, text))
		return;
	if (burn) {
		for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
			;
		return;
	}
	/* The default slack prolongs a sleep by 50 µs. The runtime inherits the slack, so it is reset. */
	sys_prctl(PR_SET_TIMERSLACK, 1);
	for (uint64_t now, end = now_ns() + ns; (now = now_ns()) < end;) {
		struct __kernel_timespec left = {(long)((end - now) / 1000000000), (long)((end - now) % 1000000000)};
		sys_poll(NULL, 0, &left);
	}
	sys_prctl(PR_SET_TIMERSLACK, 0);
}

static bool is_kill(char **argv)
{
	for (; *argv; argv++)
		if (same(*argv, "kill"))
			return true;
	return false;
}

void run_adapter(char **argv, char **envp)
{
	static char conf[CONF_MAX];
	static char *arguments[ARGUMENTS_MAX];
	struct list hidden = {0};
	char *binary = NULL, *over = NULL, *score = NULL;
	size_t n = 1;

	long fd = sys_open(conf_name, O_RDONLY, 0);
	if (fd < 0)
		fail("open", conf_name, fd);
	read_all((int)fd, conf_name, conf, sizeof conf);
	sys_close((int)fd);
	const char *verb = verb_of(argv + 1);
	for (char *line = conf, *next; *line; line = next) {
		for (next = line; *next && *next != '\n'; next++)
			;
		if (*next)
			*next++ = 0;
		if (begins(line, "binary "))
			binary = line + sizeof "binary " - 1;
		else if (begins(line, "flag ") && n < ARGUMENTS_MAX / 2)
			arguments[n++] = line + sizeof "flag " - 1;
		else if (begins(line, "hide ") && hidden.n < LIST_MAX)
			hidden.items[hidden.n++] = line + sizeof "hide " - 1;
		else if (begins(line, "score "))
			score = line + sizeof "score " - 1;
		else if (begins(line, "over "))
			over = line + sizeof "over " - 1;
		else if (begins(line, "sleep "))
			delay(verb, line + sizeof "sleep " - 1, false);
		else if (begins(line, "burn "))
			delay(verb, line + sizeof "burn " - 1, true);
		else
			fail("read: what is this line", line, 0);
	}
	if (!binary)
		fail("read: no binary in", conf_name, 0);
	const char *bundle = bundle_of(argv);
	if ((hidden.n || score) && bundle)
		change_bundle(bundle, &hidden, score);
	arguments[0] = binary;
	for (argv++; *argv; argv++) {
		if (n == ARGUMENTS_MAX - 1)
			fail("run", binary, -E2BIG);
		arguments[n++] = *argv;
	}
	if (over && is_kill(arguments + 1))
		kill_translated(arguments, envp, over);
	long e = sys_execve(binary, arguments, envp);
	die(EXIT_NOT_RUN, "adapter", "run", binary, e);
}
