/* kvm: makes a virtual machine with one processor, runs a small guest in it and writes "halted" when the guest has halted.
 *
 *   kvm [--device FILE] [--ms MS]
 *
 * The presence of /dev/kvm proves nothing: a paravirtual KVM makes machines too, but runs only guests that were built for
 * it, and others hang. So the guest enters each mode that a real kernel and gVisor enter, and writes a byte to a port in each: real mode,
 * protected mode, long mode with paging, an exception, user mode with a system call. The limit counts for the whole guest.
 *
 * The probe has a guest for x86_64 only. On other architectures it makes the machine and the processor and writes "made".
 *
 * Exit codes: 0 as above; 1 the kernel refused an operation, or the guest ended otherwise; 3 the guest hangs. */
#include "kvm.h"

#include <asm/ioctl.h>
#include <linux/kvm.h>

enum { EXIT_HANGS = 3 };

#define COMMAND "kvm"

static const char *device = "/dev/kvm";

static long sys_ioctl(int fd, unsigned long request, const void *argument)
{
	return syscall6(__NR_ioctl, fd, (long)request, (long)argument, 0, 0, 0);
}

/* control makes an ioctl that must not fail. */
static int control(int fd, const char *name, unsigned long request, const void *argument)
{
	long r = sys_ioctl(fd, request, argument);
	if (r < 0)
		die(EXIT_FAILED, COMMAND, name, device, r);
	return (int)r;
}

#define CONTROL(fd, request, argument) control(fd, #request, request, argument)

#if defined(__x86_64__)

/* The stages of the guest, with the byte that it writes in each. */
static const struct {
	char byte;
	const char *name;
} stages[] = {
	{'r', "in real mode"},
	{'p', "in protected mode"},
	{'l', "in long mode with paging"},
	{'x', "in the handler of an exception"},
	{'u', "in a system call from user mode"},
};

static const char *stage(unsigned n) { return n < COUNT(stages) ? stages[n].name : "finished"; }

_Noreturn static void bad_exit(const struct kvm_run *run, unsigned n)
{
	put(&err, COMMAND ": the guest ends before it is ");
	put(&err, stage(n));
	put(&err, ", with exit reason ");
	put_number(&err, run->exit_reason);
	if (run->exit_reason == KVM_EXIT_SHUTDOWN)
		put(&err, " (triple fault)");
	put(&err, "\n");
	flush(&err);
	sys_exit(EXIT_FAILED);
}

/* Without CPUID the processor has no long mode. */
static void set_cpuid(int kvm, int cpu)
{
	static struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entries[256];
	} cpuid;
	cpuid.head.nent = COUNT(cpuid.entries);
	CONTROL(kvm, KVM_GET_SUPPORTED_CPUID, &cpuid);
	CONTROL(cpu, KVM_SET_CPUID2, &cpuid);
}

/* run_guest executes the guest to its end. */
static void run_guest(int kvm, int vm, int cpu)
{
	set_cpuid(kvm, cpu);
	char *memory = shared_memory(COMMAND, GUEST_MEMORY);
	guest_prepare(memory);
	const struct kvm_userspace_memory_region region = {.memory_size = GUEST_MEMORY, .userspace_addr = (uintptr_t)memory};
	CONTROL(vm, KVM_SET_USER_MEMORY_REGION, &region);

	struct kvm_sregs system;
	CONTROL(cpu, KVM_GET_SREGS, &system);
	system.cs.base = 0;
	system.cs.selector = 0;
	CONTROL(cpu, KVM_SET_SREGS, &system);
	const struct kvm_regs registers = {.rip = GUEST_CODE, .rflags = 2};
	CONTROL(cpu, KVM_SET_REGS, &registers);

	const long size = CONTROL(kvm, KVM_GET_VCPU_MMAP_SIZE, NULL);
	const struct kvm_run *run = (const struct kvm_run *)syscall6(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	if ((long)run < 0 && (long)run > -4096)
		die(EXIT_FAILED, COMMAND, "map the state of the processor of", device, (long)run);
	for (unsigned n = 0;;) {
		long r = alarm_rang ? -EINTR : sys_ioctl(cpu, KVM_RUN, NULL);
		if (r == -EINTR && alarm_rang)
			die(EXIT_HANGS, COMMAND, "the guest hangs before it is", stage(n), 0);
		if (r == -EINTR || r == -EAGAIN)
			continue;
		if (r < 0)
			die(EXIT_FAILED, COMMAND, "KVM_RUN", device, r);
		if (run->exit_reason == KVM_EXIT_HLT && n == COUNT(stages))
			return;
		if (run->exit_reason != KVM_EXIT_IO || n == COUNT(stages) || run->io.port != GUEST_PORT ||
		    ((const char *)run)[run->io.data_offset] != stages[n].byte)
			bad_exit(run, n);
		n++;
	}
}

#endif

void command_kvm(char **argv)
{
	uint64_t ms = 10000;
	const struct option options[] = {
		{"--device", OPTION_TEXT, &device, 0, 0},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
	};
	parse_all(COMMAND, argv, options, COUNT(options));

	int kvm = (int)sys_open(device, O_RDWR, 0);
	if (kvm < 0)
		die(EXIT_FAILED, COMMAND, "open", device, kvm);
	if (CONTROL(kvm, KVM_GET_API_VERSION, NULL) != KVM_API_VERSION)
		die(EXIT_FAILED, COMMAND, "the kernel has another version of KVM behind", device, 0);
	long e = alarm_after_ms(ms);
	if (e < 0)
		die(EXIT_FAILED, COMMAND, "set the limit", NULL, e);
	int vm = CONTROL(kvm, KVM_CREATE_VM, NULL);
	int cpu = CONTROL(vm, KVM_CREATE_VCPU, NULL);
	const char *result = "made\n";
#if defined(__x86_64__)
	run_guest(kvm, vm, cpu);
	result = "halted\n";
#else
	(void)cpu;
#endif
	put(&out, result);
	flush(&out);
	sys_exit(EXIT_OK);
}
