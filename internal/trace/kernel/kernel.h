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
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
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
};

// task_struct___before_5_14 has the field that __state replaced.
struct task_struct___before_5_14 {
	long state;
};

#pragma clang attribute pop

enum {
	BPF_MAP_TYPE_HASH = 1,
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

#define SEC(name) __attribute__((section(name), used))

// READ reads a field of an object of the kernel; 0 if the kernel refuses.
#define READ(object, field)                                                                    \
	({                                                                                     \
		__typeof__((object)->field) value_ = 0;                                        \
		bpf_probe_read_kernel(&value_, sizeof(value_), &(object)->field);              \
		value_;                                                                        \
	})
