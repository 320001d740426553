/* The system calls of the probe, one typed function each.
 *
 * A call that fails returns the negative error number; errno does not exist. Numbers, structures and flags come from the
 * kernel's headers (linux-libc-dev), so the file has nothing specific to the three architectures. */
#pragma once

#include <asm/signal.h>
#include <asm/socket.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/in.h>
#include <linux/keyctl.h>
#include <linux/limits.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/sysinfo.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <linux/utsname.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel does not export these to programs. They are the same on all architectures of the probe. */
enum {
	AF_INET = 2,
	SOCK_STREAM = 1,
	SOCK_CLOEXEC = O_CLOEXEC,
	SOCK_NONBLOCK = O_NONBLOCK,
	MSG_NOSIGNAL = 0x4000,
};

/* The result of getdents64. */
struct dirent64 {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

long syscall6(long number, long a, long b, long c, long d, long e, long f);
void signal_return(void);

_Noreturn static inline void sys_exit(int code)
{
	for (;;)
		syscall6(__NR_exit_group, code, 0, 0, 0, 0, 0);
}

/* Files. */

static inline long sys_open(const char *path, int flags, int mode)
{
	return syscall6(__NR_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, mode, 0, 0);
}

static inline long sys_openat(int dir, const char *path, int flags)
{
	return syscall6(__NR_openat, dir, (long)path, flags | O_CLOEXEC, 0, 0, 0);
}

static inline long sys_close(int fd) { return syscall6(__NR_close, fd, 0, 0, 0, 0, 0); }

static inline long sys_close_on_exec(int fd)
{
	return syscall6(__NR_fcntl, fd, F_SETFD, FD_CLOEXEC, 0, 0, 0);
}

static inline long sys_dup(int fd) { return syscall6(__NR_dup, fd, 0, 0, 0, 0, 0); }

static inline long sys_dup_to(int fd, int as) { return syscall6(__NR_dup3, fd, as, 0, 0, 0, 0); }

static inline long sys_read(int fd, void *buf, size_t n)
{
	return syscall6(__NR_read, fd, (long)buf, (long)n, 0, 0, 0);
}

static inline long sys_write(int fd, const void *buf, size_t n)
{
	return syscall6(__NR_write, fd, (long)buf, (long)n, 0, 0, 0);
}

static inline long sys_seek_set(int fd, long offset)
{
	return syscall6(__NR_lseek, fd, offset, 0, 0, 0, 0);
}

static inline long sys_truncate(int fd, long size)
{
	return syscall6(__NR_ftruncate, fd, size, 0, 0, 0, 0);
}

static inline long sys_fstat(int fd, struct stat *st)
{
	return syscall6(__NR_fstat, fd, (long)st, 0, 0, 0, 0);
}

static inline long sys_stat(const char *path, struct stat *st)
{
	return syscall6(__NR_newfstatat, AT_FDCWD, (long)path, (long)st, 0, 0, 0);
}

/* The real user's rights, without a look at security modules. */
static inline long sys_access(const char *path, int mode)
{
	return syscall6(__NR_faccessat, AT_FDCWD, (long)path, mode, 0, 0, 0);
}

static inline long sys_statfs(const char *path, struct statfs *st)
{
	return syscall6(__NR_statfs, (long)path, (long)st, 0, 0, 0, 0);
}

static inline long sys_getdents(int fd, void *buf, size_t n)
{
	return syscall6(__NR_getdents64, fd, (long)buf, (long)n, 0, 0, 0);
}

static inline long sys_mkdir(const char *path, int mode)
{
	return syscall6(__NR_mkdirat, AT_FDCWD, (long)path, mode, 0, 0, 0);
}

/* riscv64 has renameat2 only. */
static inline long sys_rename(const char *from, const char *to)
{
	return syscall6(__NR_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0, 0);
}

static inline long sys_unlinkat(int dir, const char *path, int flags)
{
	return syscall6(__NR_unlinkat, dir, (long)path, flags, 0, 0, 0);
}

static inline long sys_readlink(const char *path, char *buf, size_t n)
{
	return syscall6(__NR_readlinkat, AT_FDCWD, (long)path, (long)buf, (long)n, 0, 0);
}

static inline long sys_getcwd(char *buf, size_t n)
{
	return syscall6(__NR_getcwd, (long)buf, (long)n, 0, 0, 0, 0);
}

static inline long sys_chdir(const char *path)
{
	return syscall6(__NR_chdir, (long)path, 0, 0, 0, 0, 0);
}

static inline long sys_fchdir(int fd) { return syscall6(__NR_fchdir, fd, 0, 0, 0, 0, 0); }

static inline long sys_chroot(const char *path)
{
	return syscall6(__NR_chroot, (long)path, 0, 0, 0, 0, 0);
}

/* Both paths are in the new root, see pivot_root(2). */
static inline long sys_pivot_root(const char *root, const char *old)
{
	return syscall6(__NR_pivot_root, (long)root, (long)old, 0, 0, 0, 0);
}

static inline long sys_symlink(const char *to, const char *path)
{
	return syscall6(__NR_symlinkat, (long)to, AT_FDCWD, (long)path, 0, 0, 0);
}

static inline long sys_umask(int mask) { return syscall6(__NR_umask, mask, 0, 0, 0, 0, 0); }

static inline long sys_pipe(int fds[2])
{
	return syscall6(__NR_pipe2, (long)fds, O_CLOEXEC, 0, 0, 0, 0);
}

/* Without a timeout (NULL) it waits until a descriptor is ready or a signal comes. */
static inline long sys_poll(struct pollfd *fds, unsigned n, const struct __kernel_timespec *timeout)
{
	return syscall6(__NR_ppoll, (long)fds, n, (long)timeout, 0, 0, 0);
}

/* Mounts. */

static inline long sys_unshare(unsigned long flags)
{
	return syscall6(__NR_unshare, (long)flags, 0, 0, 0, 0, 0);
}

static inline long sys_setns(int fd, int kind) { return syscall6(__NR_setns, fd, kind, 0, 0, 0, 0); }

static inline long sys_mount(const char *source, const char *target, const char *type, unsigned long flags,
			     const char *data)
{
	return syscall6(__NR_mount, (long)source, (long)target, (long)type, (long)flags, (long)data, 0);
}

/* MNT_DETACH of the C library: an unmount that does not wait for open files. */
enum { DETACH = 2 };

static inline long sys_unmount(const char *target, int flags)
{
	return syscall6(__NR_umount2, (long)target, flags, 0, 0, 0, 0);
}

static inline long sys_open_tree(const char *path, unsigned flags)
{
	return syscall6(__NR_open_tree, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

static inline long sys_fsopen(const char *type)
{
	return syscall6(__NR_fsopen, (long)type, FSOPEN_CLOEXEC, 0, 0, 0, 0);
}

static inline long sys_fsconfig_create(int fs)
{
	return syscall6(__NR_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0, 0);
}

static inline long sys_fsmount(int fs, unsigned attributes)
{
	return syscall6(__NR_fsmount, fs, FSMOUNT_CLOEXEC, attributes, 0, 0, 0);
}

static inline long sys_move_mount(int tree, const char *target)
{
	return syscall6(__NR_move_mount, tree, (long)"", AT_FDCWD, (long)target,
			MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS, 0);
}

/* Processes, identities, signals. */

static inline long sys_getpid(void) { return syscall6(__NR_getpid, 0, 0, 0, 0, 0, 0); }

static inline long sys_getppid(void) { return syscall6(__NR_getppid, 0, 0, 0, 0, 0, 0); }

static inline long sys_getuid(void) { return syscall6(__NR_getuid, 0, 0, 0, 0, 0, 0); }

/* A fork is a clone that shares nothing. Two of the architectures have no fork. */
static inline long sys_fork(void) { return syscall6(__NR_clone, SIGCHLD, 0, 0, 0, 0, 0); }

static inline long sys_kill(int pid, int signal) { return syscall6(__NR_kill, pid, signal, 0, 0, 0, 0); }

static inline long sys_wait(int pid, int *status)
{
	return syscall6(__NR_wait4, pid, (long)status, 0, 0, 0, 0);
}

static inline long sys_execve(const char *path, char *const argv[], char *const envp[])
{
	return syscall6(__NR_execve, (long)path, (long)argv, (long)envp, 0, 0, 0);
}

static inline long sys_prctl(int option, unsigned long value)
{
	return syscall6(__NR_prctl, option, (long)value, 0, 0, 0, 0);
}

static inline long sys_capget(struct __user_cap_header_struct *header, struct __user_cap_data_struct *data)
{
	return syscall6(__NR_capget, (long)header, (long)data, 0, 0, 0, 0);
}

static inline long sys_capset(struct __user_cap_header_struct *header, const struct __user_cap_data_struct *data)
{
	return syscall6(__NR_capset, (long)header, (long)data, 0, 0, 0, 0);
}

static inline long sys_setgroups(size_t n, const unsigned *groups)
{
	return syscall6(__NR_setgroups, (long)n, (long)groups, 0, 0, 0, 0);
}

static inline long sys_setresgid(unsigned real, unsigned effective, unsigned saved)
{
	return syscall6(__NR_setresgid, real, effective, saved, 0, 0, 0);
}

static inline long sys_setresuid(unsigned real, unsigned effective, unsigned saved)
{
	return syscall6(__NR_setresuid, real, effective, saved, 0, 0, 0);
}

/* The limits of the calling process. */
static inline long sys_set_limit(int resource, const struct rlimit64 *limit)
{
	return syscall6(__NR_prlimit64, 0, resource, (long)limit, 0, 0, 0);
}

static inline long sys_keyctl(int operation, long argument)
{
	return syscall6(__NR_keyctl, operation, argument, 0, 0, 0, 0);
}

static inline long sys_sched_yield(void) { return syscall6(__NR_sched_yield, 0, 0, 0, 0, 0, 0); }

/* The affinity of the calling process; n is the size of the set in bytes. */
static inline long sys_sched_getaffinity(void *set, size_t n)
{
	return syscall6(__NR_sched_getaffinity, 0, (long)n, (long)set, 0, 0, 0);
}

static inline long sys_sched_setaffinity(const void *set, size_t n)
{
	return syscall6(__NR_sched_setaffinity, 0, (long)n, (long)set, 0, 0, 0);
}

static inline long sys_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	return syscall6(__NR_rt_sigaction, signal, (long)action, (long)old, sizeof(sigset_t), 0, 0);
}

static inline long sys_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return syscall6(__NR_rt_sigprocmask, how, (long)set, (long)old, sizeof(sigset_t), 0, 0);
}

static inline long sys_setitimer(const struct __kernel_old_itimerval *timer)
{
	return syscall6(__NR_setitimer, ITIMER_REAL, (long)timer, 0, 0, 0, 0);
}

/* Memory and synchronisation. */

static inline long sys_mmap(size_t n, int flags)
{
	return syscall6(__NR_mmap, 0, (long)n, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
}

static inline long sys_munmap(long address, size_t n)
{
	return syscall6(__NR_munmap, address, (long)n, 0, 0, 0, 0);
}

/* The word is in memory that processes share. */
static inline long sys_futex_wait_shared(uint32_t *word, uint32_t while_equal, const struct __kernel_timespec *limit)
{
	return syscall6(__NR_futex, (long)word, FUTEX_WAIT, (long)while_equal, (long)limit, 0, 0);
}

static inline long sys_futex_wake_shared(uint32_t *word, int n)
{
	return syscall6(__NR_futex, (long)word, FUTEX_WAKE, n, 0, 0, 0);
}

static inline long sys_futex_wake(uint32_t *word, int n)
{
	return syscall6(__NR_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n, 0, 0, 0);
}

/* Sockets. */

static inline uint16_t big_endian(uint16_t v) { return __builtin_bswap16(v); }

/* Without the builtin, because on a CPU without an instruction for it the builtin calls a library function. */
static inline uint32_t big_endian32(uint32_t v)
{
	return v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24;
}

static inline long sys_socket(int family, int type) { return syscall6(__NR_socket, family, type, 0, 0, 0, 0); }

static inline long sys_setsockopt(int fd, int option, const void *value, size_t n)
{
	return syscall6(__NR_setsockopt, fd, SOL_SOCKET, option, (long)value, (long)n, 0);
}

static inline long sys_getsockopt(int fd, int option, void *value, int n)
{
	return syscall6(__NR_getsockopt, fd, SOL_SOCKET, option, (long)value, (long)&n, 0);
}

static inline long sys_connect(int fd, const struct sockaddr_in *addr)
{
	return syscall6(__NR_connect, fd, (long)addr, sizeof *addr, 0, 0, 0);
}

static inline long sys_bind(int fd, const struct sockaddr_in *addr)
{
	return syscall6(__NR_bind, fd, (long)addr, sizeof *addr, 0, 0, 0);
}

static inline long sys_listen(int fd, int backlog) { return syscall6(__NR_listen, fd, backlog, 0, 0, 0, 0); }

static inline long sys_getsockname(int fd, struct sockaddr_in *addr)
{
	int n = sizeof *addr;
	return syscall6(__NR_getsockname, fd, (long)addr, (long)&n, 0, 0, 0);
}

static inline long sys_accept(int fd) { return syscall6(__NR_accept4, fd, 0, 0, SOCK_CLOEXEC, 0, 0); }

static inline long sys_send(int fd, const void *buf, size_t n)
{
	return syscall6(__NR_sendto, fd, (long)buf, (long)n, MSG_NOSIGNAL, 0, 0);
}

/* The machine. */

static inline long sys_clock_gettime(int clock, struct __kernel_timespec *ts)
{
	return syscall6(__NR_clock_gettime, clock, (long)ts, 0, 0, 0, 0);
}

static inline long sys_sysinfo(struct sysinfo *info)
{
	return syscall6(__NR_sysinfo, (long)info, 0, 0, 0, 0, 0);
}

static inline long sys_uname(struct new_utsname *name)
{
	return syscall6(__NR_uname, (long)name, 0, 0, 0, 0, 0);
}

static inline long sys_getrandom(void *buf, size_t n)
{
	return syscall6(__NR_getrandom, (long)buf, (long)n, 0, 0, 0, 0);
}
