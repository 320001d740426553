// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Counts the kernel's functions that the observed processes enter, by program and address. trace.c keeps the map processes.
//
// The work of a hardware interrupt is not counted: it interrupts any process. Interrupts of the processor do not nest, and do not change their CPU. The
// kernel skips these programs while one of them runs on the same CPU, so an interrupt of a program is skipped from its begin to its end.
//
// The kernel attaches such programs to many functions at once since Linux 5.18.
#include "kernel.h"

struct function {
	__u64 program;
	__u64 address; // of the first instruction, or of the patch behind it
};

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	struct function *key;
	__u64 *value;
	int (*max_entries)[65536];
} functions SEC(".maps");

// interrupts is 1 on a CPU in an interrupt.
struct {
	int (*type)[BPF_MAP_TYPE_PERCPU_ARRAY];
	__u32 *key;
	__u32 *value;
	int (*max_entries)[1];
} interrupts SEC(".maps");

volatile __u32 counting; // Touchstone sets it while the programs are attached to all functions
__u64 lost; // the number of functions without a place in the map

static void set_interrupt(__u32 value)
{
	__u32 index = 0;
	__u32 *interrupt = bpf_map_lookup_elem(&interrupts, &index);
	if (interrupt)
		*interrupt = value;
}

SEC("kprobe.multi/begin")
int interrupt_begin(void)
{
	set_interrupt(1);
	return 0;
}

SEC("kprobe.multi/end")
int interrupt_end(void)
{
	set_interrupt(0);
	return 0;
}

SEC("kprobe.multi/function")
int function_entry(void *registers)
{
	if (!counting)
		return 0;
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 *program = bpf_map_lookup_elem(&processes, &tgid);
	if (!program || !*program)
		return 0; // Touchstone has no counts
	__u32 index = 0;
	__u32 *interrupt = bpf_map_lookup_elem(&interrupts, &index);
	if (!interrupt || *interrupt)
		return 0;
	struct function key = {.program = *program, .address = bpf_get_func_ip(registers)};
	__u64 *count = bpf_map_lookup_elem(&functions, &key);
	if (!count) {
		__u64 zero = 0;
		bpf_map_update_elem(&functions, &key, &zero, BPF_NOEXIST); // another CPU may be faster
		count = bpf_map_lookup_elem(&functions, &key);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		__sync_fetch_and_add(&lost, 1);
	return 0;
}

char terms[] SEC("license") = "GPL"; // the kernel requires it of programs that read its memory
