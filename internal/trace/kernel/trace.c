// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Counts the system calls of the descendants of Touchstone and of a target's daemons, by step and by program.
//
// A program is the life of a process between two calls of execve. Processes and threads that a process makes belong to its program until
// they execute another. Each count has a place of its own in a map, and is added to in place: no event can be lost between the kernel and
// Touchstone. A map that is full is counted in lost.
//
// A thread is running or waiting. Its running time is added to the system call that it is in, at each end of a call and at each switch to another
// thread. Each wait is a record in the buffer waits, which Touchstone reads after the trace. A wait without a place is counted in lost_waits.
//
// Everything works since Linux 5.8: raw tracepoints, BTF, global variables.
#include "kernel.h"

// The ids of programs are times of execve in nanoseconds. Touchstone and the daemons have smaller ids.
enum { TOUCHSTONE = 0 }; // it has no counts

// The numbers of the counts that are no system calls of the 64-bit table.
enum call {
	OUTSIDE = 0xfffffffb, // the time outside of system calls
	FAULT = 0xfffffffc,   // a page fault
	COMPAT = 0xfffffffd,  // a system call of a 32-bit program
	THREAD = 0xfffffffe,  // a new thread
	FORK = 0xffffffff,    // a new process
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

struct count {
	__u64 number;
	__u64 running; // nanoseconds; of OUTSIDE and of system calls
};

// The modes of programs. The first call of a thread in a program decides, because a test of each call costs too much.
enum mode { UNKNOWN = 0, NATIVE = 1, THIRTY_TWO = 2 };

struct thread {
	__u64 program;
	__u64 since;   // of the last addition of running time, or of the wait; 0 before the first event of a thread that is older than the trace
	__u64 woken;   // during a wait: the begin of the time in the run queue; 0 before it
	__u64 outside; // running time outside of system calls that is not yet added
	__u32 call;
	__u32 tgid;
	__u32 is_waiting;
	__u32 is_new; // the call is not yet counted
	__u32 step;   // of the call
	__u32 faults; // page faults that are not yet added
	__u32 mode;   // of the program
	__u32 padding;
};

// A wait lasts from the switch to another thread until the switch back, or has no end if the thread has ended.
struct wait {
	__u64 program;
	__u64 begin;
	__u64 woken; // equal to begin for a thread that lost its CPU
	__u64 end;   // 0: the thread ended at begin
	__u32 thread;
	__u32 tgid;
	__u32 call;
	__u32 padding;
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
	struct count *value;
	int (*max_entries)[65536];
} counts SEC(".maps");

// threads has the threads of the observed processes, by thread ID.
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	__u32 *key;
	struct thread *value;
	int (*max_entries)[32768];
} threads SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	struct wait *value;
	int (*max_entries)[8388608];
} waits SEC(".maps");

volatile __u32 step; // Touchstone sets it
__u64 lost;          // the number of events without a place in a map
__u64 lost_waits;

// compat_flag is the flag of 32-bit programs in thread_info.flags. It is 0 on x86, which has another field.
volatile const __u64 compat_flag;

static void add(__u64 program, __u32 step, __u32 call, __u64 number, __u64 running)
{
	struct key key = {.program = program, .step = step, .call = call};
	struct count *count = bpf_map_lookup_elem(&counts, &key);
	if (!count) {
		struct count zero = {};
		bpf_map_update_elem(&counts, &key, &zero, BPF_NOEXIST); // another CPU may be faster
		count = bpf_map_lookup_elem(&counts, &key);
	}
	if (!count) {
		__sync_fetch_and_add(&lost, 1);
		return;
	}
	if (number)
		__sync_fetch_and_add(&count->number, number);
	if (running)
		__sync_fetch_and_add(&count->running, running);
}

// account adds the running time of a thread since the last addition, and counts the call that it is in. Additions are postponed because each costs a
// search: the count to the first addition of the call's time, and page faults and the time outside of system calls to the end of the thread's turn.
static void account(struct thread *thread, __u64 now, int is_end)
{
	__u64 running = thread->since ? now - thread->since : 0;
	thread->since = now;
	if (thread->call == OUTSIDE)
		thread->outside += running;
	else
		add(thread->program, thread->is_new ? thread->step : step, thread->call, thread->is_new, running);
	thread->is_new = 0;
	if (!is_end)
		return;
	if (thread->outside)
		add(thread->program, step, OUTSIDE, 0, thread->outside);
	if (thread->faults)
		add(thread->program, step, FAULT, thread->faults, 0);
	thread->outside = 0;
	thread->faults = 0;
}

static void record(struct thread *thread, __u32 tid, __u64 end)
{
	struct wait wait = {
		.program = thread->program, .begin = thread->since, .woken = thread->woken, .end = end, .thread = tid, .tgid = thread->tgid, .call = thread->call,
	};
	if (bpf_ringbuf_output(&waits, &wait, sizeof(wait), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&lost_waits, 1);
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
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread)
		return 0;
	account(thread, bpf_ktime_get_ns(), 0);
	if (thread->mode == UNKNOWN)
		thread->mode = is_compat((void *)bpf_get_current_task()) ? THIRTY_TWO : NATIVE;
	thread->call = thread->mode == THIRTY_TWO ? COMPAT : args[1];
	thread->is_new = 1;
	thread->step = step;
	return 0;
}

SEC("raw_tracepoint/sys_exit")
int sys_exit(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread)
		return 0;
	account(thread, bpf_ktime_get_ns(), 0);
	thread->call = OUTSIDE;
	return 0;
}

SEC("raw_tracepoint/page_fault_user")
int page_fault_user(void)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread)
		thread->faults++;
	return 0;
}

SEC("raw_tracepoint/sched_process_fork")
int sched_process_fork(__u64 *args)
{
	struct task_struct *child = (void *)args[1];
	__u32 parent_tgid = READ((struct task_struct *)args[0], tgid);
	__u32 child_tgid = READ(child, tgid);
	__u64 *found = bpf_map_lookup_elem(&processes, &parent_tgid);
	if (!found)
		return 0;
	__u64 program = *found;
	if (parent_tgid != child_tgid && bpf_map_update_elem(&processes, &child_tgid, &program, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	if (program == TOUCHSTONE)
		return 0;
	add(program, step, parent_tgid == child_tgid ? THREAD : FORK, 1, 0);
	__u32 tid = READ(child, pid);
	__u64 now = bpf_ktime_get_ns();
	struct thread thread = {.program = program, .since = now, .woken = now, .call = OUTSIDE, .tgid = child_tgid, .is_waiting = 1};
	if (bpf_map_update_elem(&threads, &tid, &thread, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

static __u32 level_of(struct task_struct *task)
{
	struct pid *pid = READ(task, thread_pid);
	return READ(pid, level);
}

// exec_thread makes a thread the only one of its process, with a new program. It has the process ID from now on.
static void exec_thread(__u32 tgid, __u32 old_tid, __u64 program)
{
	__u64 now = bpf_ktime_get_ns();
	struct thread thread = {.program = program, .since = now, .woken = now, .call = OUTSIDE, .tgid = tgid};
	struct thread *old = bpf_map_lookup_elem(&threads, &old_tid);
	if (old) {
		thread.call = old->call;
		account(old, now, 1);
		if (old_tid != tgid) {
			record(old, old_tid, 0);
			bpf_map_delete_elem(&threads, &old_tid);
		}
	}
	if (bpf_map_update_elem(&threads, &tgid, &thread, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	record(&thread, tgid, now); // a wait without length, which begins the program
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
	exec_thread(tgid, args[1], id);
	return 0;
}

SEC("raw_tracepoint/sched_process_exit")
int sched_process_exit(__u64 *args)
{
	struct task_struct *task = (void *)args[0];
	__u32 tid = READ(task, pid);
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread)
		account(thread, bpf_ktime_get_ns(), 1);
	struct signal_struct *signal = READ(task, signal);
	if (READ(signal, live.counter) > 0)
		return 0; // other threads of the process live
	__u32 tgid = READ(task, tgid);
	bpf_map_delete_elem(&processes, &tgid);
	return 0;
}

enum { TASK_DEAD = 0x80 };

static long state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;
	if (__builtin_preserve_field_info(old->state, BPF_FIELD_EXISTS))
		return READ(old, state);
	return task->__state;
}

// sched_switch and sched_wakeup run for each thread of the machine, so they read the fields of tasks directly.
SEC("tp_btf/sched_switch")
int sched_switch(__u64 *args)
{
	__u64 now = bpf_ktime_get_ns();
	struct task_struct *prev = (void *)args[1];
	__u32 tid = prev->pid;
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread) {
		long state = state_of(prev);
		account(thread, now, 1);
		thread->woken = args[0] || !state ? now : 0;
		thread->is_waiting = 1;
		if (state & TASK_DEAD) {
			record(thread, tid, 0);
			bpf_map_delete_elem(&threads, &tid);
		}
	}
	tid = ((struct task_struct *)args[2])->pid;
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread) {
		if (thread->is_waiting)
			record(thread, tid, now);
		thread->is_waiting = 0;
		thread->since = now;
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int sched_wakeup(__u64 *args)
{
	__u32 tid = ((struct task_struct *)args[0])->pid;
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread && thread->is_waiting && !thread->woken)
		thread->woken = bpf_ktime_get_ns();
	return 0;
}

char terms[] SEC("license") = "GPL"; // the kernel requires it of programs that read its memory
