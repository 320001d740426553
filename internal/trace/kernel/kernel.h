// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The kernel's types, constants and functions that the programs use. The loader finds the fields in the running kernel by its BTF, so the lists of
// fields are neither complete nor in the kernel's order.
#pragma once

typedef unsigned char __u8;
typedef int __s32;
typedef unsigned int __u32;
typedef long __s64;
typedef unsigned long __u64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	__u32 max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
};

struct socket {
	struct sock *sk;
};

struct mm_struct {
	unsigned long arg_start;
	struct file *exe_file;
};

struct pid {
	__u32 level;
};

typedef struct {
	__s32 counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct thread_info {
	unsigned long flags;
};

// thread_info___x86 has the field that only x86 has. The loader ignores the end of the name.
struct thread_info___x86 {
	__u32 status;
};

struct task_io_accounting {
	__u64 rchar;
	__u64 wchar;
};

struct task_struct {
	struct thread_info thread_info;
	__u32 __state;
	__s32 pid;
	__s32 tgid;
	char comm[16];
	struct task_struct *real_parent;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct files_struct *files;
	unsigned long min_flt;
	unsigned long maj_flt;
	struct task_io_accounting ioac;
};

// task_struct___before_5_14 has the field that __state replaced.
struct task_struct___before_5_14 {
	long state;
};

// The registers of user code. The loader ignores the ends of the names.
struct pt_regs___x86 {
	unsigned long ax;
	unsigned long di;
	unsigned long si;
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__s32 syscallno;
};

struct pt_regs___riscv {
	unsigned long a1;
	unsigned long a7;
	unsigned long orig_a0;
	unsigned long cause;
};

#pragma clang attribute pop

enum {
	ENOSYS = 38,
	RISCV_SYSCALL = 8, // EXC_SYSCALL
	CGROUP_MAGIC = 0x27e0eb,
	CGROUP2_MAGIC = 0x63677270,
	SOCKET_MAGIC = 0x534f434b,
	AF_NETLINK = 16,
};

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_FIELD_EXISTS = 2, // of __builtin_preserve_field_info
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static __u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static __u64 (*bpf_get_current_task)(void) = (void *)35;
static long (*bpf_probe_read_kernel)(void *dst, __u32 size, const void *src) = (void *)113;
static long (*bpf_probe_read_user_str)(void *dst, __u32 size, const void *src) = (void *)114;
static __u64 (*bpf_get_func_ip)(void *registers) = (void *)173;
static long (*bpf_ringbuf_output)(void *map, const void *data, __u64 size, __u64 flags) = (void *)130;
static void *(*bpf_ringbuf_reserve)(void *map, __u64 size, __u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;

#define SEC(name) __attribute__((section(name), used))

// processes has the programs of processes, by process ID. All objects of a trace share it.
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	__u32 *key;
	__u64 *value;
	int (*max_entries)[32768];
} processes SEC(".maps");

// READ reads a field of an object of the kernel; 0 if the kernel refuses.
#define READ(object, field)                                                                    \
	({                                                                                     \
		__typeof__((object)->field) value_ = 0;                                        \
		bpf_probe_read_kernel(&value_, sizeof(value_), &(object)->field);              \
		value_;                                                                        \
	})
