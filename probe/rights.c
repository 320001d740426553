/* rights: writes the rights of the program and its view of the machine, as the kernel tells it.
 *
 * Facts:
 *
 *   user               the user's ID, and "mapped from" with the lines of /proc/self/uid_map
 *   capabilities       the effective ones, as a hexadecimal mask; "bounding" are those that a program can still get
 *   no_new_privs       1 if no program can gain a right by execve(2)
 *   seccomp            0 without a filter, 2 with one (1 is the strict mode)
 *   label              the label of the security module, from /proc/self/attr/current
 *   device             a device below /dev; one fact for each
 *   writable           a file of /proc or /sys that is for writing by its mode, and may be opened for that, as access(2) says; a fact for each of the
 *                      first WRITABLE_MAX
 *
 * A fact that the kernel does not tell has the error as its text. Metrics: Files and WritableFiles, the files below /proc and /sys, without the
 * directories of processes; Processes, the processes that /proc shows; CPUs, the CPUs that it may use; Memory, the memory that sysinfo(2) shows, in bytes.
 * access(2) knows modes, capabilities and read-only mounts; a security module may refuse the file all the same. */
#include "cpus.h"

#include <linux/stat.h>

enum { WRITABLE_MAX = 200, DEPTH_MAX = 24, PATH_SIZE = 4096 };

/* Types of entries of directories, see readdir(3). */
enum { UNKNOWN = 0, DIRECTORY = 4, LINK = 10 };

enum { W_OK = 2 };

static uint64_t files, writable, processes;

/* The path of the current entry. */
static char path[PATH_SIZE];

static void fact_mask(const char *name, uint64_t mask)
{
	begin_fact(name);
	put_hex(&out, mask, 16);
	end_fact();
}

/* The content of a small file, without its last line end. */
static void fact_file(const char *name, const char *file)
{
	char text[1024];
	long fd = sys_open(file, O_RDONLY, 0);
	long n = fd < 0 ? fd : sys_read((int)fd, text, sizeof text);
	if (fd >= 0)
		sys_close((int)fd);
	if (n < 0) {
		report_number(name, n);
		return;
	}
	while (n > 0 && (text[n - 1] == '\n' || !text[n - 1]))
		n--;
	report_text(name, text, (size_t)n);
}

static void write_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	long e = sys_capget(&header, data);
	if (e < 0)
		report_number("capabilities", e);
	else
		fact_mask("capabilities", (uint64_t)data[1].effective << 32 | data[0].effective);
	uint64_t bounding = 0;
	for (unsigned c = 0; c < 64; c++)
		if (sys_prctl(PR_CAPBSET_READ, c) == 1)
			bounding |= (uint64_t)1 << c;
	fact_mask("bounding", bounding);
}

static bool is_number(const char *name)
{
	uint64_t n;
	return parse_number(name, &n);
}

/* The action of a walk on an entry that is no directory. */
typedef void visit(void);

static void visit_device(void)
{
	struct stat st;
	if (sys_stat(path, &st) == 0 && ((st.st_mode & S_IFMT) == S_IFCHR || (st.st_mode & S_IFMT) == S_IFBLK))
		report_text("device", path, length(path));
}

static void visit_file(void)
{
	struct stat st;
	files++;
	/* A runtime hides a file by a mount on it: of a device, which may be written. */
	if (sys_access(path, W_OK) < 0 || sys_stat(path, &st) < 0 || (st.st_mode & S_IFMT) != S_IFREG || !(st.st_mode & 0222))
		return;
	if (writable++ < WRITABLE_MAX)
		report_text("writable", path, length(path));
}

/* Walks through the directory path, whose length is n, and visits all entries below it except links. */
static void walk(size_t n, unsigned depth, visit *see)
{
	char entries[4096];
	long dir = sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir < 0)
		return;
	long size;
	while ((size = sys_getdents((int)dir, entries, sizeof entries)) > 0)
		for (long at = 0; at < size; at += ((struct dirent64 *)(entries + at))->reclen) {
			const struct dirent64 *entry = (struct dirent64 *)(entries + at);
			const size_t more = length(entry->name);
			if (same(entry->name, ".") || same(entry->name, "..") || entry->type == LINK || n + 1 + more >= PATH_SIZE)
				continue;
			if (depth == 0 && is_number(entry->name) && same(path, "/proc")) {
				processes++;
				continue;
			}
			path[n] = '/';
			for (size_t i = 0; i <= more; i++)
				path[n + 1 + i] = entry->name[i];
			bool below = entry->type == DIRECTORY;
			struct stat st;
			if (entry->type == UNKNOWN && sys_stat(path, &st) == 0)
				below = (st.st_mode & S_IFMT) == S_IFDIR;
			if (!below)
				see();
			else if (depth < DEPTH_MAX)
				walk(n + 1 + more, depth + 1, see);
			path[n] = 0;
		}
	sys_close((int)dir);
}

static void walk_from(const char *top, visit *see)
{
	const size_t n = length(top);
	for (size_t i = 0; i <= n; i++)
		path[i] = top[i];
	walk(n, 0, see);
}

static unsigned count_cpus(void)
{
	static struct cpus set;
	unsigned n = 0;
	long e = sys_sched_getaffinity(&set, sizeof set);
	if (e < 0)
		die(EXIT_FAILED, "rights", "ask on which CPUs it may run", NULL, e);
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++)
		n += has_cpu(&set, cpu);
	return n;
}

void command_rights(char **argv)
{
	parse_all("rights", argv, NULL, 0);
	report_number("user", sys_getuid());
	fact_file("users", "/proc/self/uid_map");
	write_capabilities();
	report_number("no_new_privs", sys_prctl(PR_GET_NO_NEW_PRIVS, 0));
	report_number("seccomp", sys_prctl(PR_GET_SECCOMP, 0));
	fact_file("label", "/proc/self/attr/current");
	walk_from("/dev", visit_device);
	walk_from("/proc", visit_file);
	walk_from("/sys", visit_file);
	struct sysinfo info;
	long e = sys_sysinfo(&info);
	if (e < 0)
		die(EXIT_FAILED, "rights", "ask for the memory", NULL, e);
	report_metric("Files", (double)files, "count");
	report_metric("WritableFiles", (double)writable, "count");
	report_metric("Processes", (double)processes, "count");
	report_metric("CPUs", count_cpus(), "count");
	report_metric("Memory", (double)info.totalram * info.mem_unit, "B");
	report_done();
}
