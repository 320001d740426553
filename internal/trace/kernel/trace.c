// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Counts the system calls of the descendants of Touchstone and of a target's daemons, by step and by program.
//
// A program is the life of a process between two calls of execve. Processes and threads that a process makes belong to its program until
// they execute another. Each program has a slot of counts in each step, and the programs add to it in place: no event can be lost between the kernel
// and Touchstone. An event without a slot is counted in lost.
//
// A system call costs no search: each CPU has the slot of its thread. The kernel itself counts the page faults and the bytes of a thread, and they are
// added up at the end of the thread's turn on the CPU. Nothing runs at the end of a system call.
//
// Each wait of a thread is a record in the buffer waits, which Touchstone reads after the trace. A wait without a place is counted in lost_waits.
//
// Everything works since Linux 5.8: raw tracepoints, BTF, global variables. Atomic additions return no value before Linux 5.12.
#include "kernel.h"

// The ids of programs are times of execve in nanoseconds. Touchstone and the daemons have smaller ids.
enum { TOUCHSTONE = 0 }; // it has no counts

enum { OUTSIDE = 0xfffffffb, COMPAT = 0xfffffffd }; // the calls of waits outside of system calls, and of 32-bit programs

enum { NO_STEP = 0xffffffff };

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
	__u32 padding;
};

// The places in counts.calls that are no numbers of system calls.
enum { COMPAT_CALL = 510, UNKNOWN_CALL = 511, CALLS = 512 };

enum { DIRECTORIES = 11 }; // with a count of opened files

// work is the work of a thread that the kernel itself counts.
struct work {
	__u64 faults;
	__u64 read; // bytes
	__u64 written;
};

struct counts {
	__u32 calls[CALLS];
	__u32 opens[DIRECTORIES + 1];
	__u32 processes;
	__u32 threads;
	__u32 cgroup_writes;
	__u32 netlink_messages;
	struct work work;
};

// The modes of programs. The first call of a thread in a program decides, because a test of each call costs too much.
enum mode { NATIVE = 1, THIRTY_TWO = 2 };

struct thread {
	__u64 program;
	__u64 since;  // of the turn or of the wait; 0 before the first event of a thread that is older than the trace
	__u64 woken;  // during a wait: the begin of the time in the run queue; 0 before it
	__u64 regs;   // the address of the registers of user code; 0 before the first call in the program
	__u64 path;   // of turn
	struct work work; // of the task that is added already
	__u32 call;   // of the wait
	__u32 tgid;
	__u32 is_waiting;
	__u32 mode;
	__u32 step; // of slot
	__u32 slot;
};

// A turn is the time of a thread on a CPU. Its step is NO_STEP if the slot is unknown, or if the thread is not observed.
struct turn {
	__u64 path; // the address of the path of the last open, if its page was not yet in memory; else 0
	__u32 step;
	__u32 slot;
	__u32 mode;
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

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	__u64 *key;
	struct program *value;
	int (*max_entries)[8192];
} programs SEC(".maps");

enum { SLOTS = 5120 };

// slots has the slot of each program in each step, and owners has the program and the step of each slot. Two CPUs at once may give two slots to one pair.
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	struct key *key;
	__u32 *value;
	int (*max_entries)[SLOTS];
} slots SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	__u32 *key;
	struct key *value;
	int (*max_entries)[SLOTS];
} owners SEC(".maps");

// counts has the counts of the slots, which begin at 1. Slot 0 is a place for events without a slot, which lost has.
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	__u32 *key;
	struct counts *value;
	int (*max_entries)[SLOTS + 1];
} counts SEC(".maps");

struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	__u32 *key;
	struct turn *value;
	int (*max_entries)[1];
} turns SEC(".maps");

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

// paths has the paths of opened files, if Touchstone wants them. A path without a place is counted in lost_paths.
struct opening {
	__u32 slot;
	__u8 path[252];
};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	struct opening *value;
	int (*max_entries)[2097152];
} paths SEC(".maps");

volatile __u32 step; // Touchstone sets it
__u64 lost;          // the number of events without a place in a map
__u64 lost_waits;
__u64 lost_paths;
__u32 slot_count;

// compat_flag is the flag of 32-bit programs in thread_info.flags. It is 0 on x86, which has another field.
volatile const __u64 compat_flag;

volatile const __u32 has_paths;

// prefixes has the directory of a path that begins with a text. The first one decides, and the last one matches each path.
enum { PREFIXES = 32, WORDS = 3 };
struct prefix {
	__u64 text[WORDS];
	__u64 mask[WORDS]; // of the bits to compare
	__u64 directory;
};
volatile const struct prefix prefixes[PREFIXES];

// watched has the system calls whose arguments are looked at.
enum watch { OPEN = 1, OPEN_AT = 2, OUTPUT = 3 };
volatile const __u8 watched[CALLS];

// attempts bounds the search for a free slot: as many CPUs may search at once.
enum { ATTEMPTS = 64 };

// slot_of returns the slot of a program in a step, and 0 without one. The slots up to slot_count are taken. Other CPUs in this function may have taken more.
static __u32 slot_of(__u64 program, __u32 step)
{
	struct key key = {.program = program, .step = step};
	__u32 *known = bpf_map_lookup_elem(&slots, &key);
	if (known)
		return *known;
	__u32 slot = slot_count;
	for (int i = 0; i < ATTEMPTS; i++) {
		slot++;
		if (!bpf_map_update_elem(&owners, &slot, &key, BPF_NOEXIST)) {
			__sync_fetch_and_add(&slot_count, 1);
			bpf_map_update_elem(&slots, &key, &slot, BPF_ANY); // without a place, the next search takes another slot
			return slot;
		}
	}
	__sync_fetch_and_add(&lost, 1);
	return 0;
}

static __u32 slot_in(struct thread *thread, __u32 step)
{
	if (thread->step != step) {
		thread->slot = slot_of(thread->program, step);
		thread->step = step;
	}
	return thread->slot;
}

// add_work adds the work of a thread since the last addition to a slot. Before the first event of an older thread the begin of its work is unknown.
static void add_work(struct thread *thread, struct task_struct *task, __u32 slot)
{
	struct work work = {.faults = task->min_flt + task->maj_flt};
	if (__builtin_preserve_field_info(task->ioac.rchar, BPF_FIELD_EXISTS)) {
		work.read = task->ioac.rchar;
		work.written = task->ioac.wchar;
	}
	struct counts *sum = bpf_map_lookup_elem(&counts, &slot);
	if (sum && thread->since) {
		if (work.faults != thread->work.faults)
			__sync_fetch_and_add(&sum->work.faults, work.faults - thread->work.faults);
		if (work.read != thread->work.read)
			__sync_fetch_and_add(&sum->work.read, work.read - thread->work.read);
		if (work.written != thread->work.written)
			__sync_fetch_and_add(&sum->work.written, work.written - thread->work.written);
	}
	thread->work = work;
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

// call_of returns the system call of a thread that leaves its CPU. The registers of user code have its number, unless they were saved for an exception.
// x86 has the result -ENOSYS in them during a call, ARM64 a number below 0 in an exception, and RISC-V the cause.
static __u32 call_of(struct thread *thread)
{
	if (!thread->regs)
		return thread->call;
	struct pt_regs___x86 *x86 = (void *)thread->regs;
	struct pt_regs___arm64 *arm64 = (void *)thread->regs;
	struct pt_regs___riscv *riscv = (void *)thread->regs;
	__u32 call = OUTSIDE;
	if (__builtin_preserve_field_info(x86->orig_ax, BPF_FIELD_EXISTS)) {
		if (READ(x86, ax) == (unsigned long)-ENOSYS)
			call = READ(x86, orig_ax);
	} else if (__builtin_preserve_field_info(arm64->syscallno, BPF_FIELD_EXISTS)) {
		__s32 number = READ(arm64, syscallno);
		if (number >= 0)
			call = number;
	} else if (__builtin_preserve_field_info(riscv->a7, BPF_FIELD_EXISTS)) {
		if (READ(riscv, cause) == RISCV_SYSCALL)
			call = READ(riscv, a7);
	}
	return call != OUTSIDE && thread->mode == THIRTY_TWO ? COMPAT : call;
}

// find_slot sets the slot of the current thread. It returns 0 for a thread that is not observed.
static int find_slot(struct turn *turn, __u32 step, __u64 regs)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (!thread)
		return 0;
	if (!thread->regs) {
		thread->regs = regs;
		thread->mode = is_compat((void *)bpf_get_current_task()) ? THIRTY_TWO : NATIVE;
	}
	turn->slot = slot_in(thread, step);
	turn->mode = thread->mode;
	turn->step = step;
	return 1;
}

static __u64 argument(__u64 regs, int is_second)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;
	struct pt_regs___riscv *riscv = (void *)regs;
	if (__builtin_preserve_field_info(x86->orig_ax, BPF_FIELD_EXISTS))
		return is_second ? READ(x86, si) : READ(x86, di);
	if (__builtin_preserve_field_info(arm64->syscallno, BPF_FIELD_EXISTS))
		return is_second ? READ(arm64, regs[1]) : READ(arm64, regs[0]);
	return is_second ? READ(riscv, a1) : READ(riscv, orig_a0);
}

static void record_path(__u32 slot, __u64 address)
{
	struct opening *opening = bpf_ringbuf_reserve(&paths, sizeof(*opening), 0);
	if (!opening) {
		__sync_fetch_and_add(&lost_paths, 1);
		return;
	}
	opening->slot = slot;
	bpf_probe_read_user_str(opening->path, sizeof(opening->path), (void *)address);
	bpf_ringbuf_submit(opening, BPF_RB_NO_WAKEUP);
}

// count_open counts the directory of a path in the memory of the thread. It returns 0 if the kernel has not yet loaded the page of the path.
static int count_open(struct counts *sum, __u32 slot, __u64 address)
{
	__u64 path[WORDS] = {};
	if (bpf_probe_read_user_str(path, sizeof(path), (void *)address) < 0)
		return 0;
	for (int i = 0; i < PREFIXES; i++) {
		volatile const struct prefix *prefix = &prefixes[i];
		__u64 difference = 0;
		for (int word = 0; word < WORDS; word++)
			difference |= (path[word] ^ prefix->text[word]) & prefix->mask[word];
		__u64 directory = prefix->directory;
		if (difference || directory >= DIRECTORIES)
			continue;
		__sync_fetch_and_add(&sum->opens[directory], 1);
		break;
	}
	if (has_paths)
		record_path(slot, address);
	return 1;
}

// count_output counts a write to a file of a cgroup, and a message of a netlink socket.
static void count_output(struct counts *sum, __u32 descriptor)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct files_struct *files = READ(task, files);
	struct fdtable *table = READ(files, fdt);
	if (descriptor >= READ(table, max_fds))
		return;
	struct file *file = 0;
	bpf_probe_read_kernel(&file, sizeof(file), READ(table, fd) + descriptor);
	struct inode *inode = READ(file, f_inode);
	struct super_block *fs = READ(inode, i_sb);
	unsigned long magic = READ(fs, s_magic);
	if (magic == CGROUP_MAGIC || magic == CGROUP2_MAGIC)
		__sync_fetch_and_add(&sum->cgroup_writes, 1);
	if (magic != SOCKET_MAGIC)
		return;
	struct socket *socket = READ(file, private_data);
	struct sock *sock = READ(socket, sk);
	if (READ(sock, __sk_common.skc_family) == AF_NETLINK)
		__sync_fetch_and_add(&sum->netlink_messages, 1);
}

SEC("raw_tracepoint/sys_enter")
int sys_enter(__u64 *args)
{
	__u32 zero = 0, current_step = step;
	struct turn *turn = bpf_map_lookup_elem(&turns, &zero);
	if (!turn || (turn->step != current_step && !find_slot(turn, current_step, args[0])))
		return 0;
	__u32 slot = turn->slot;
	struct counts *sum = bpf_map_lookup_elem(&counts, &slot);
	if (!sum)
		return 0;
	if (turn->path) {
		count_open(sum, slot, turn->path);
		turn->path = 0;
	}
	__u64 call = turn->mode == THIRTY_TWO ? COMPAT_CALL : args[1];
	if (call >= CALLS)
		call = UNKNOWN_CALL;
	__sync_fetch_and_add(&sum->calls[call], 1);
	switch (watched[call]) {
	case OPEN:
	case OPEN_AT: {
		__u64 path = argument(args[0], watched[call] == OPEN_AT);
		if (!count_open(sum, slot, path))
			turn->path = path;
		break;
	}
	case OUTPUT:
		count_output(sum, argument(args[0], 0));
	}
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
	__u32 current_step = step, slot = slot_of(program, current_step);
	struct counts *sum = bpf_map_lookup_elem(&counts, &slot);
	if (sum)
		__sync_fetch_and_add(parent_tgid == child_tgid ? &sum->threads : &sum->processes, 1);
	__u32 tid = READ(child, pid);
	__u64 begin = bpf_ktime_get_ns();
	struct thread thread = {
		.program = program, .since = begin, .woken = begin, .call = OUTSIDE, .tgid = child_tgid, .is_waiting = 1, .step = current_step, .slot = slot,
	};
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
static void exec_thread(struct task_struct *task, __u32 tgid, __u32 old_tid, __u64 program)
{
	__u64 now = bpf_ktime_get_ns();
	struct thread thread = {.program = program, .since = now, .woken = now, .call = OUTSIDE, .tgid = tgid, .step = NO_STEP};
	struct thread *old = bpf_map_lookup_elem(&threads, &old_tid);
	if (old) {
		add_work(old, task, slot_in(old, step));
		thread.work = old->work;
		old->since = now;
		if (old_tid != tgid) {
			record(old, old_tid, 0);
			bpf_map_delete_elem(&threads, &old_tid);
		}
	}
	if (bpf_map_update_elem(&threads, &tgid, &thread, BPF_ANY))
		__sync_fetch_and_add(&lost, 1);
	record(&thread, tgid, now); // a wait without length, which begins the program
	__u32 zero = 0;
	struct turn *turn = bpf_map_lookup_elem(&turns, &zero);
	if (turn)
		turn->step = NO_STEP;
}

SEC("tp_btf/sched_process_exec")
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
	exec_thread(task, tgid, args[1], id);
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

enum { TASK_DEAD = 0x80 };

static long state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;
	if (__builtin_preserve_field_info(old->state, BPF_FIELD_EXISTS))
		return READ(old, state);
	return task->__state;
}

// sched_switch and sched_wakeup run for each thread of the machine. BTF tracepoints read the fields of tasks directly.
SEC("tp_btf/sched_switch")
int sched_switch(__u64 *args)
{
	__u64 now = bpf_ktime_get_ns();
	struct task_struct *prev = (void *)args[1], *next = (void *)args[2];
	__u32 zero = 0, tid = prev->pid;
	struct turn *turn = bpf_map_lookup_elem(&turns, &zero);
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread) {
		long state = state_of(prev);
		add_work(thread, prev, slot_in(thread, step));
		thread->call = call_of(thread);
		thread->since = now;
		thread->woken = args[0] || !state ? now : 0;
		thread->is_waiting = 1;
		if (turn)
			thread->path = turn->path;
		if (state & TASK_DEAD) {
			record(thread, tid, 0);
			bpf_map_delete_elem(&threads, &tid);
		}
	}
	tid = next->pid;
	thread = bpf_map_lookup_elem(&threads, &tid);
	if (thread) {
		if (thread->is_waiting)
			record(thread, tid, now);
		if (!thread->since)
			add_work(thread, next, 0);
		thread->is_waiting = 0;
		thread->since = now;
	}
	if (!turn)
		return 0;
	turn->step = NO_STEP;
	turn->path = 0;
	if (thread && thread->regs) {
		turn->path = thread->path;
		turn->slot = thread->slot;
		turn->mode = thread->mode;
		turn->step = thread->step;
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
