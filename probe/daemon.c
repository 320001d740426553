/* daemon: runs a program in namespaces, so that its mounts and network disappear when it exits. Touchstone uses it for
 * private daemons of engines beside the user's own, and for the commands of engines without a daemon.
 *
 * It applies the options in this order:
 *   --network FD          enter the network namespace of descriptor FD, and close FD
 *   --mounts FD           enter the mount namespace of descriptor FD instead of a new one, and close FD
 *   --private DIR         mount an empty tmpfs at DIR, in a new mount namespace
 *   --keep PATH           keep this directory or symbolic link below a private one visible
 *   --memory DIR          mount an empty tmpfs at DIR as well, also below a kept directory; DIR is made if it is missing
 *   --share               propagate the mounts of the program to mount namespaces that its children make later
 *   --dir DIR             change to this directory; without it a new mount namespace keeps the directory, and --mounts changes to /
 * Then it executes the program with its own environment. --size BYTES is the size of each tmpfs, so that no program fills the
 * host's memory by its files there. Without it the kernel's default holds: half of the memory.
 *
 * The mounts of a new mount namespace disappear when the last process in it has exited. New mounts of the host still
 * propagate into it. No mount of it propagates to the host, also with --share: then its mounts form peer groups of their own
 * below the host's.
 *
 * A failure is exit code 126, and 127 if the program itself cannot be run. */
#include "probe.h"

enum { EXIT_NOT_PREPARED = 126, EXIT_NOT_RUN = 127 };

_Noreturn static void fail(const char *what, const char *subject, long error)
{
	die(EXIT_NOT_PREPARED, "daemon", what, subject, error);
}

/* Creates the directory and its parents. It changes the path temporarily and restores it. */
static void make_directories(char *path)
{
	for (char *p = path + 1;; p++) {
		if (*p && *p != '/')
			continue;
		char end = *p;
		*p = 0;
		long e = sys_mkdir(path, 0755);
		if (e < 0 && e != -EEXIST)
			fail("make the directory", path, e);
		*p = end;
		if (!end)
			return;
	}
}

/* A directory or a symbolic link that stays visible: the text of the link, or a copy of the directory's mounts. */
struct kept {
	const char *path;
	char link[4096]; /* empty for a directory */
	int tree;
};

static void open_kept(struct kept *k)
{
	long e = sys_readlink(k->path, k->link, sizeof k->link - 1);
	k->link[e > 0 ? e : 0] = 0;
	if (e > 0)
		return;
	e = sys_open_tree(k->path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (e < 0)
		fail("keep (Linux 5.2 or later is needed)", k->path, e);
	k->tree = (int)e;
}

static void show_kept(struct kept *k, char *path)
{
	long e;
	if (!k->link[0]) {
		make_directories(path);
		e = sys_move_mount(k->tree, path);
		sys_close(k->tree);
	} else {
		char *name = path + length(path);
		while (*name != '/')
			name--;
		*name = 0;
		make_directories(path);
		*name = '/';
		e = sys_symlink(k->link, path);
	}
	if (e < 0)
		fail("keep", path, e);
}

/* Mounts a tmpfs of a size in bytes, 0 for the kernel's default. */
static void mount_memory(const char *dir, uint64_t size)
{
	struct sink data = {0};
	put(&data, "mode=0755");
	if (size) {
		put(&data, ",size=");
		put_number(&data, size);
	}
	long e = sys_mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, data.buf);
	if (e < 0)
		fail("mount a tmpfs at", dir, e);
}

_Noreturn static void run(const char *dir, char **program, char **envp)
{
	long e;
	if (dir && (e = sys_chdir(dir)) < 0)
		fail("change to the directory", dir, e);
	e = sys_execve(program[0], program, envp);
	die(EXIT_NOT_RUN, "daemon", "run", program[0], e);
}

void command_daemon(char **argv, char **envp)
{
	uint64_t network = 0, mounts = 0, size = 0;
	const char *dir = NULL;
	bool share = false;
	struct list private = {0}, kept = {0}, memory = {0};
	const struct option options[] = {
		{"--network", OPTION_NUMBER, &network, 3, 1023},
		{"--mounts", OPTION_NUMBER, &mounts, 3, 1023},
		{"--private", OPTION_LIST, &private, 0, 0},
		{"--keep", OPTION_LIST, &kept, 0, 0},
		{"--memory", OPTION_LIST, &memory, 0, 0},
		{"--size", OPTION_NUMBER, &size, 1, INT64_MAX},
		{"--share", OPTION_FLAG, &share, 0, 0},
		{"--dir", OPTION_TEXT, &dir, 0, 0},
	};
	char **program = parse_options("daemon", argv, options, COUNT(options));
	if (!*program)
		usage("daemon", "the program is missing", NULL);
	if (mounts && (private.n || kept.n || memory.n || size || share))
		usage("daemon", "--private, --keep, --memory, --size and --share are for a new mount namespace, not for one of --mounts", NULL);

	long e;
	if (network) {
		if ((e = sys_setns((int)network, CLONE_NEWNET)) < 0)
			fail("enter the network namespace", NULL, e);
		sys_close((int)network);
	}
	if (mounts) {
		if ((e = sys_setns((int)mounts, CLONE_NEWNS)) < 0)
			fail("enter the mount namespace", NULL, e);
		sys_close((int)mounts);
		run(dir, program, envp);
	}
	if ((e = sys_unshare(CLONE_NEWNS)) < 0)
		fail("make a mount namespace", NULL, e);
	if ((e = sys_mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) < 0)
		fail("keep mounts from the host: remount", "/", e);
	struct kept visible[LIST_MAX];
	for (size_t i = 0; i < kept.n; i++) {
		visible[i].path = kept.items[i];
		open_kept(&visible[i]);
	}
	for (size_t i = 0; i < private.n; i++)
		mount_memory(private.items[i], size);
	for (size_t i = 0; i < kept.n; i++)
		show_kept(&visible[i], kept.items[i]);
	for (size_t i = 0; i < memory.n; i++) {
		make_directories(memory.items[i]);
		mount_memory(memory.items[i], size);
	}
	/* The mounts are slaves of the host's by now, so the new peer groups do not contain the host's mounts. */
	if (share && (e = sys_mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL)) < 0)
		fail("share mounts: remount", "/", e);
	run(dir, program, envp);
}
