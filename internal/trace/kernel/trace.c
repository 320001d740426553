// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Counts the system calls of the descendants of Touchstone and of a target's daemons, by step and by program.
//
// A program is the life of a process between two calls of execve. Processes and threads that a process makes belong to its program until
// they execute another. Each count has a place of its own in a map, and is added to in place: no event can be lost between the kernel and
// Touchstone. A map that is full is counted in lost.
//
// Everything works since Linux 5.8: raw tracepoints, BTF, global variables.
#include "kernel.h"

// The ids of programs are times of execve in nanoseconds. Touchstone and the daemons have smaller ids.
enum { TOUCHSTONE = 0 }; // it has no counts

// The numbers of the counts that are no system calls of the 64-bit table.
enum call {
	COMPAT = 0xfffffffd, // a system call of a 32-bit program
	THREAD = 0xfffffffe, // a new thread
	FORK = 0xffffffff,   // a new process
};

struct program {
	__u64 parent; // the program of the parent process at execve
	__u64 inode;  // of the file
	__u32 device; // of the file, as in the kernel: 12 bits major, 20 bits minor
	__u32 step;   // of the execve
	__u32 level;  // of the PID namespace: 0 is the first one
	__u32 parent_level;
	__u8 name[16];     // of the file
	__u8 argument[64]; // the first argument
};

struct key {
	__u64 program;
	__u32 step;
	__u32 call;
};

// processes has the programs of processes, by process ID.
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	__u32 *key;
	__u64 *value;
	int (*max_entries)[32768];
} processes SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	__u64 *key;
	struct program *value;
	int (*max_entries)[8192];
} programs SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	struct key *key;
	__u64 *value;
	int (*max_entries)[65536];
} counts SEC(".maps");

volatile __u32 step; // Touchstone sets it
__u64 lost;          // the number of events without a place in a map

// compat_flag is the flag of 32-bit programs in thread_info.flags. It is 0 on x86, which has another field.
volatile const __u64 compat_flag;

static void add(__u64 program, __u32 call)
{
	struct key key = {.program = program, .step = step, .call = call};
	__u64 *count = bpf_map_lookup_elem(&counts, &key);
	if (!count) {
		__u64 zero = 0;
		bpf_map_update_elem(&counts, &key, &zero, BPF_NOEXIST); // another CPU may be faster
		count = bpf_map_lookup_elem(&counts, &key);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		__sync_fetch_and_add(&lost, 1);
}

static int is_compat(struct task_struct *task)
{
	struct thread_info___x86 *info = (void *)&task->thread_info;
	if (__builtin_preserve_field_info(info->status, BPF_FIELD_EXISTS))
		return READ(info, status) & 2; // TS_COMPAT
	return (READ(task, thread_info.flags) & compat_flag) != 0;
}

SEC("raw_tracepoint/sys_enter")
int sys_enter(__u64 *args)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 *program = bpf_map_lookup_elem(&processes, &tgid);
	if (!program || *program == TOUCHSTONE)
		return 0;
	add(*program, is_compat((void *)bpf_get_current_task()) ? COMPAT : args[1]);
	return 0;
}

SEC("raw_tracepoint/sched_process_fork")
int sched_process_fork(__u64 *args)
{
	__u32 parent = READ((struct task_struct *)args[0], tgid);
	__u32 child = READ((struct task_struct *)args[1], tgid);
	__u64 *found = bpf_map_lookup_elem(&processes, &parent);
	if (!found)
		return 0;
	__u64 program = *found;
	if (program != TOUCHSTONE)
		add(program, parent == child ? THREAD : FORK);
	if (parent != child && bpf_map_update_elem(&processes, &child, &program, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

static __u32 level_of(struct task_struct *task)
{
	struct pid *pid = READ(task, thread_pid);
	return READ(pid, level);
}

SEC("raw_tracepoint/sched_process_exec")
int sched_process_exec(__u64 *args)
{
	struct task_struct *task = (void *)args[0];
	__u32 tgid = READ(task, tgid);
	if (!bpf_map_lookup_elem(&processes, &tgid))
		return 0;
	struct task_struct *parent = READ(task, real_parent);
	__u32 parent_tgid = READ(parent, tgid);
	__u64 *parent_program = bpf_map_lookup_elem(&processes, &parent_tgid);
	struct mm_struct *mm = READ(task, mm);
	struct file *file = READ(mm, exe_file);
	struct inode *inode = READ(file, f_inode);
	struct super_block *fs = READ(inode, i_sb);
	struct program program = {
		.parent = parent_program ? *parent_program : TOUCHSTONE,
		.inode = READ(inode, i_ino),
		.device = READ(fs, s_dev),
		.step = step,
		.level = level_of(task),
		.parent_level = level_of(parent),
	};
	bpf_probe_read_kernel(program.name, sizeof(program.name), task->comm);
	bpf_probe_read_user_str(program.argument, sizeof(program.argument), (void *)READ(mm, arg_start));
	__u64 id = bpf_ktime_get_ns();
	long err = bpf_map_update_elem(&programs, &id, &program, BPF_NOEXIST);
	if (err) { // another CPU may have taken the id at the same time
		id++;
		err = bpf_map_update_elem(&programs, &id, &program, BPF_NOEXIST);
	}
	if (err || bpf_map_update_elem(&processes, &tgid, &id, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

SEC("raw_tracepoint/sched_process_exit")
int sched_process_exit(__u64 *args)
{
	struct task_struct *task = (void *)args[0];
	struct signal_struct *signal = READ(task, signal);
	if (READ(signal, live.counter) > 0)
		return 0; // other threads of the process live
	__u32 tgid = READ(task, tgid);
	bpf_map_delete_elem(&processes, &tgid);
	return 0;
}

char terms[] SEC("license") = "GPL"; // the kernel requires it of programs that read its memory
