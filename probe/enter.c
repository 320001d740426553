/* enter: runs a program in another root directory. The bare-metal baseline uses it: it runs the same program from the
 * same root file system as in a container, but without the isolation of a container, except for the given options. An
 * image of a user is untrusted, so its programs must not have the rights of root on the host.
 *
 * It applies the options in this order:
 *   --cgroup FILE         join a cgroup: write "0" to FILE (cgroup.procs, or tasks on v1)
 *   --cpus LIST           set the CPU affinity, a list like "0-3,6"
 *   --netns FILE          join the network namespace of FILE
 *   --userns              the caller has put it in a user namespace as root (for use without root)
 *   --system              mount read-only in the new root a /proc of the caller's PID namespace and the host's /sys, without
 *                         the mounts below it, and a /dev with the devices of containers: null, zero, full, random, urandom,
 *                         tty and terminals
 *   --devices             mount only a /dev, read-only: null, zero, full, random and urandom
 *   --bind SRC:DST[:ro]   mount SRC of the host at DST in the new root (paths without colons)
 *   --tmpfs DST           mount an empty tmpfs at DST in the new root
 *   --read-only           make the new root itself read-only
 *   --root DIR            make DIR the root, and chdir to /
 *   --confine             drop all capabilities that containers do not have, set no_new_privs, and from its start on let no
 *                         process without CAP_SYS_PTRACE look into it
 *   --unprivileged        instead, become the user nobody without groups, capabilities and the caller's keys, in a UTS namespace
 *                         of its own, hide like --confine, and set no_new_privs. A tmpfs is small then. With --userns the
 *                         user stays the caller
 *   --files N, --processes N, --memory N
 *                         set RLIMIT_NOFILE, RLIMIT_NPROC and RLIMIT_AS
 *   --gate                wait for the caller, see below
 * Then it executes the program, by its path in the new root, with its own environment.
 *
 * At the gate it writes one byte to descriptor 3 when everything is prepared, and waits for one byte on descriptor 4. If
 * descriptor 4 is at its end instead, the caller has cancelled, and the exit code is 125. Descriptor 3 is closed when
 * the program has been executed. A second byte on it means that exec failed. The program inherits neither descriptor.
 *
 * The options --system, --devices, --bind, --tmpfs and --read-only create a mount namespace, from which mounts do not propagate to
 * the host. Its root is DIR by pivot_root, so that no file of the host is left in the namespace. A chroot would not be
 * enough: containers have CAP_SYS_CHROOT, and a second chroot leads out of the first. Without these options, or if DIR
 * is /, the root is changed by chroot. Targets must exist. Each mount is created before the change of the root and
 * attached after it, so that no link in the new root can lead a mount out of it. This needs Linux 5.2. Binds and tmpfs
 * are mounted in the order of the arguments.
 *
 * A failure is exit code 126, and 127 if the program itself cannot be run. */
#include "cpus.h"

enum { EXIT_UNWANTED = 125, EXIT_NOT_PREPARED = 126, EXIT_NOT_RUN = 127 };

enum { READY_FD = 3, GO_FD = 4 };

enum kind { TREE, DEVICE, TMPFS, SMALL_TMPFS, DEV, DEVICES, SEAL, TERMINALS };

struct attachment {
	const char *target;
	enum kind kind;
	int tree; /* of a TREE or DEVICE */
	bool read_only;
	unsigned long locked; /* flags that a remount must repeat */
};

static const char *const devices[] = {
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
};
enum { DEVICES_WITHOUT_TERMINALS = COUNT(devices) - 1 };

static struct attachment attachments[LIST_MAX + 6 + COUNT(devices)];
static size_t attachment_count;

_Noreturn static void fail(const char *what, const char *subject, long error)
{
	die(EXIT_NOT_PREPARED, "enter", what, subject, error);
}

static void write_file(const char *path, const char *text)
{
	long fd = sys_open(path, O_WRONLY, 0);
	if (fd < 0)
		fail("open", path, fd);
	long n = sys_write((int)fd, text, length(text));
	if (n < 0)
		fail("write", path, n);
	sys_close((int)fd);
}

static void stay_on(const char *cpus)
{
	static struct cpus set;
	if (!parse_cpus(cpus, &set))
		usage("enter", "--cpus must be a list like 0-3,6, not", cpus);
	long e = sys_sched_setaffinity(&set, sizeof set);
	if (e < 0)
		fail("stay on the CPUs", cpus, e);
}

static void join_network(const char *path)
{
	long fd = sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		fail("open the network namespace", path, fd);
	long e = sys_setns((int)fd, CLONE_NEWNET);
	if (e < 0)
		fail("join the network namespace", path, e);
	sys_close((int)fd);
}

/* Mounts of the host propagate into the new namespace, but not back. */
static void make_mount_namespace(void)
{
	long e = sys_unshare(CLONE_NEWNS);
	if (e < 0)
		fail("make a mount namespace", NULL, e);
	e = sys_mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL);
	if (e < 0)
		fail("keep mounts from the host: remount", "/", e);
}

/* In a user namespace a remount must not drop these flags. */
static unsigned long locked_flags(const char *path)
{
	/* statfs uses other numbers than mount for some flags. */
	static const struct {
		unsigned long statfs, mount;
	} flags[] = {
		{0x2, MS_NOSUID}, {0x4, MS_NODEV}, {0x8, MS_NOEXEC},
		{0x400, MS_NOATIME}, {0x800, MS_NODIRATIME}, {0x1000, MS_RELATIME},
	};
	struct statfs st;
	long e = sys_statfs(path, &st);
	if (e < 0)
		fail("look at the file system of", path, e);
	unsigned long locked = 0;
	for (size_t i = 0; i < COUNT(flags); i++)
		if ((unsigned long)st.f_flags & flags[i].statfs)
			locked |= flags[i].mount;
	return locked;
}

static void detach(enum kind kind, const char *source, const char *target, bool recursive, bool read_only)
{
	long tree = sys_open_tree(source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0));
	if (tree == -ENOENT && kind == DEVICE)
		return;
	if (tree < 0)
		fail("bind (Linux 5.2 or later is needed)", source, tree);
	attachments[attachment_count++] = (struct attachment){
		.target = target,
		.kind = kind,
		.tree = (int)tree,
		.read_only = read_only,
		.locked = locked_flags(source),
	};
}

static void add(enum kind kind, const char *target)
{
	attachments[attachment_count++] = (struct attachment){.target = target, .kind = kind};
}

/* The host's /proc would show its processes: with the same user ID a process opens /proc/PID/root of another one, and so
 * the host's files. */
static void detach_proc(bool user_namespace)
{
	long fs = sys_fsopen("proc");
	long tree = fs < 0 ? fs : sys_fsconfig_create((int)fs);
	if (tree >= 0)
		tree = sys_fsmount((int)fs, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (tree == -EPERM && user_namespace)
		fail("mount a file system for /proc: a user namespace may only if nothing is mounted over files of the host's "
		     "/proc, as in many containers; run as root, or outside the container:", "proc", tree);
	if (tree < 0)
		fail("mount a file system for /proc (Linux 5.2 or later is needed):", "proc", tree);
	sys_close((int)fs);
	attachments[attachment_count++] = (struct attachment){.target = "/proc", .kind = TREE, .tree = (int)tree};
}

/* Below /sys are file systems that control the host: cgroups, debugfs. Only a user namespace includes them, because it must
 * not uncover the directories below them; there the user can write to the cgroups that it owns anyway. */
static void detach_system(bool user_namespace)
{
	detach_proc(user_namespace);
	detach(TREE, "/sys", "/sys", user_namespace, true);
	add(DEV, "/dev");
	for (size_t i = 0; i < COUNT(devices); i++)
		detach(DEVICE, devices[i], devices[i], false, false);
	add(TERMINALS, "/dev/pts");
}

/* The /dev of an unprivileged program: nothing in it is writable, and no terminal of the host is in it. */
static void detach_devices(void)
{
	add(DEVICES, "/dev");
	for (size_t i = 0; i < DEVICES_WITHOUT_TERMINALS; i++)
		detach(DEVICE, devices[i], devices[i], false, false);
	add(SEAL, "/dev");
}

/* Splits "SRC:DST[:ro]" in place. */
static void detach_bind(char *bind)
{
	char *parts[3] = {bind, NULL, NULL};
	size_t n = 1;
	for (char *p = bind; *p; p++)
		if (*p == ':') {
			if (n == COUNT(parts))
				usage("enter", "--bind must be SRC:DST or SRC:DST:ro, and has too many parts after", bind);
			*p = 0;
			parts[n++] = p + 1;
		}
	if (n < 2 || parts[1][0] != '/' || (n == 3 && !same(parts[2], "ro")))
		usage("enter", "--bind must be SRC:DST or SRC:DST:ro with DST from /, unlike that of", bind);
	detach(TREE, parts[0], parts[1], true, n == 3);
}

static void mount_new(const char *type, const char *target, unsigned long flags, const char *data)
{
	long e = sys_mount(type, target, type, flags, data);
	if (e < 0)
		fail(*type == 't' ? "mount a tmpfs in the new root at" : "mount terminals in the new root at", target, e);
}

/* Makes the directories and links of a container's /dev. */
static void make_dev(const char *dev)
{
	static const char *const links[][2] = {
		{"pts/ptmx", "/dev/ptmx"}, {"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"}, {"/proc/self/fd/2", "/dev/stderr"},
	};
	mount_new("tmpfs", dev, MS_NOSUID | MS_NOEXEC, "mode=755,size=65536k");
	long e = sys_mkdir("/dev/pts", 0755);
	if (e >= 0)
		e = sys_mkdir("/dev/shm", 0755);
	for (size_t i = 0; e >= 0 && i < COUNT(links); i++)
		e = sys_symlink(links[i][0], links[i][1]);
	if (e < 0)
		fail("fill in the new root", dev, e);
	mount_new("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=65536k");
}

static void attach(const struct attachment *a)
{
	long e;
	switch (a->kind) {
	case TMPFS:
		mount_new("tmpfs", a->target, MS_NOSUID | MS_NODEV, "mode=1777");
		return;
	case SMALL_TMPFS:
		mount_new("tmpfs", a->target, MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=16384k,nr_inodes=1024");
		return;
	case DEV:
		make_dev(a->target);
		return;
	case DEVICES:
		mount_new("tmpfs", a->target, MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
		return;
	case SEAL:
		if ((e = sys_mount(NULL, a->target, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL)) < 0)
			fail("make read-only", a->target, e);
		return;
	case TERMINALS:
		mount_new("devpts", a->target, MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620");
		return;
	case DEVICE: /* the mount needs an empty file */
		e = sys_open(a->target, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (e < 0)
			fail("create in the new root", a->target, e);
		sys_close((int)e);
		break;
	case TREE:
		break;
	}
	e = sys_move_mount(a->tree, a->target);
	if (e < 0)
		fail("mount in the new root at", a->target, e);
	sys_close(a->tree);
	if (!a->read_only)
		return;
	e = sys_mount(NULL, a->target, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | a->locked, NULL);
	if (e < 0)
		fail("make read-only", a->target, e);
}

/* pivot_root needs a mount. */
static void make_root_a_mount(const char *root)
{
	long e = sys_mount(root, root, NULL, MS_BIND | MS_REC, NULL);
	if (e < 0)
		fail("bind to itself", root, e);
}

/* Makes only the root's own mount read-only, and only in this namespace. */
static void make_root_read_only(const char *root)
{
	long e = sys_mount(NULL, root, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | locked_flags(root), NULL);
	if (e < 0)
		fail("make read-only", root, e);
}

static void change_root(const char *root)
{
	long e = sys_chroot(root);
	if (e < 0)
		fail("change the root to", root, e);
	if ((e = sys_chdir("/")) < 0)
		fail("change to the new root", NULL, e);
}

/* Removes the host's root from the mount namespace. With "." twice the old root is above the new one, see pivot_root(2). */
static void pivot(const char *root)
{
	long e = sys_chdir(root);
	if (e < 0)
		fail("change to", root, e);
	if ((e = sys_pivot_root(".", ".")) < 0)
		fail("change the root of the mount namespace to", root, e);
	if ((e = sys_unmount(".", DETACH)) < 0)
		fail("unmount the host's root", NULL, e);
	if ((e = sys_chdir("/")) < 0)
		fail("change to the new root", NULL, e);
}

/* The capabilities that containerd, CRI-O, Docker and Podman all grant by default, see defaultCapabilities of
 * internal/engine/oci. */
#define BIT(capability) (1ULL << (capability))
static const uint64_t container_capabilities = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FSETID) | BIT(CAP_FOWNER) |
	BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_KILL);

/* A process of the same user ID could open /proc/PID/exe, the host's copy of this program, while it is running, and write
 * to it afterwards. The program that it executes is an ordinary process again. */
static void hide(void)
{
	long e = sys_prctl(PR_SET_DUMPABLE, 0);
	if (e < 0)
		fail("hide from other processes", NULL, e);
}

/* The user and the group without files. */
#define NOBODY 65534

static void become_nobody(void)
{
	long e = sys_setgroups(0, NULL);
	if (e < 0)
		fail("drop the groups", NULL, e);
	if ((e = sys_setresgid(NOBODY, NOBODY, NOBODY)) < 0)
		fail("become the group nobody", NULL, e);
	if ((e = sys_setresuid(NOBODY, NOBODY, NOBODY)) < 0)
		fail("become the user nobody", NULL, e);
}

/* The caller's session keyring would give its keys to every descendant. A kernel without keys, and a container that forbids the
 * call, give none. */
static void leave_keyring(void)
{
	long e = sys_keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0);
	if (e < 0 && e != -ENOSYS && e != -EPERM)
		fail("leave the session keyring", NULL, e);
}

static void leave_host_name(void)
{
	long e = sys_unshare(CLONE_NEWUTS);
	if (e < 0)
		fail("make a UTS namespace", NULL, e);
}

static void limit(int resource, uint64_t most)
{
	if (!most)
		return;
	struct rlimit64 both = {most, most};
	long e = sys_set_limit(resource, &both);
	if (e < 0)
		fail("set a limit", NULL, e);
}

/* Keeps only some capabilities. Their bounding set must be reduced before the user changes. */
static void confine(uint64_t keep, bool nobody)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	long e;
	for (unsigned c = 0; c < 64; c++) {
		if (keep & BIT(c))
			continue;
		if ((e = sys_prctl(PR_CAPBSET_DROP, c)) == -EINVAL)
			break; /* the kernel has no more */
		if (e < 0)
			fail("drop a capability", NULL, e);
	}
	if ((e = sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)) < 0)
		fail("drop the ambient capabilities", NULL, e);
	if (nobody)
		become_nobody();
	if ((e = sys_capget(&header, data)) < 0)
		fail("read the capabilities", NULL, e);
	for (unsigned i = 0; i < COUNT(data); i++) {
		data[i].permitted &= (uint32_t)(keep >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if ((e = sys_capset(&header, data)) < 0)
		fail("drop the capabilities", NULL, e);
	if ((e = sys_prctl(PR_SET_NO_NEW_PRIVS, 1)) < 0)
		fail("set no_new_privs", NULL, e);
}

static void wait_at_gate(void)
{
	long e = sys_close_on_exec(READY_FD);
	if (e >= 0)
		e = sys_write(READY_FD, "c", 1);
	if (e < 0)
		fail("write to descriptor 3", NULL, e);
	char byte;
	do
		e = sys_read(GO_FD, &byte, 1);
	while (e == -EINTR);
	if (e == 0)
		sys_exit(EXIT_UNWANTED);
	if (e < 0)
		fail("read from descriptor 4", NULL, e);
	sys_close(GO_FD);
}

void command_enter(char **argv, char **envp)
{
	char *root = NULL;
	char *cpus = NULL, *netns = NULL;
	bool gate = false, userns = false, system = false, read_only = false, confined = false;
	bool only_devices = false, unprivileged = false;
	uint64_t files = 0, processes = 0, memory = 0;
	struct list mounts = {0}, cgroups = {0};
	const struct option options[] = {
		{"--root", OPTION_TEXT, &root, 0, 0},
		{"--gate", OPTION_FLAG, &gate, 0, 0},
		{"--cpus", OPTION_TEXT, &cpus, 0, 0},
		{"--netns", OPTION_TEXT, &netns, 0, 0},
		{"--userns", OPTION_FLAG, &userns, 0, 0},
		{"--system", OPTION_FLAG, &system, 0, 0},
		{"--read-only", OPTION_FLAG, &read_only, 0, 0},
		{"--confine", OPTION_FLAG, &confined, 0, 0},
		{"--devices", OPTION_FLAG, &only_devices, 0, 0},
		{"--unprivileged", OPTION_FLAG, &unprivileged, 0, 0},
		{"--files", OPTION_NUMBER, &files, 1, UINT32_MAX},
		{"--processes", OPTION_NUMBER, &processes, 1, UINT32_MAX},
		{"--memory", OPTION_NUMBER, &memory, 1, INT64_MAX},
		{"--bind", OPTION_LIST, &mounts, 0, 0},
		{"--tmpfs", OPTION_LIST, &mounts, 0, 0},
		{"--cgroup", OPTION_LIST, &cgroups, 0, 0},
	};
	char **program = parse_options("enter", argv, options, COUNT(options));
	if (!root)
		usage("enter", "--root is missing", NULL);
	if (!*program)
		usage("enter", "the program is missing", NULL);
	if (system && only_devices)
		usage("enter", "--system includes --devices", NULL);

	if (confined || unprivileged)
		hide();
	for (size_t i = 0; i < cgroups.n; i++)
		write_file(cgroups.items[i], "0");
	if (cpus)
		stay_on(cpus);
	if (netns)
		join_network(netns);
	bool mounted = system || only_devices || read_only || mounts.n, pivoted = mounted && !same(root, "/");
	if (mounted)
		make_mount_namespace();
	if (system)
		detach_system(userns);
	if (only_devices)
		detach_devices();
	for (size_t i = 0; i < mounts.n; i++)
		if (same(mounts.names[i], "--tmpfs"))
			add(unprivileged ? SMALL_TMPFS : TMPFS, mounts.items[i]);
		else
			detach_bind(mounts.items[i]);
	if (pivoted)
		make_root_a_mount(root);
	if (read_only)
		make_root_read_only(root);
	if (pivoted)
		pivot(root);
	else
		change_root(root);
	for (size_t i = 0; i < attachment_count; i++)
		attach(&attachments[i]);
	if (unprivileged) {
		leave_host_name();
		leave_keyring();
		confine(0, !userns);
		hide(); /* the change of the user has reset it */
	} else if (confined) {
		confine(container_capabilities, false);
	}
	limit(RLIMIT_NOFILE, files);
	limit(RLIMIT_NPROC, processes);
	limit(RLIMIT_AS, memory);
	if (gate)
		wait_at_gate();
	long e = sys_execve(program[0], program, envp);
	if (gate)
		sys_write(READY_FD, "e", 1);
	die(EXIT_NOT_RUN, "enter", "run", program[0], e);
}
