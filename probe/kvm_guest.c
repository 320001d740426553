/* The guest of the command kvm for x86_64.
 *
 * Its addresses are physical and, after paging is on, equal to the virtual ones. The page tables map its 2 MiB as one page. */
#include "kvm.h"

#if defined(__x86_64__)

enum { TABLES = 0x1000, TSS = 0x6000, KERNEL_STACK = 0x7f00, USER_STACK = 0x9f00 };

/* AT is the address of a label in the guest, and SAY writes a byte to the port. The numbers repeat the enumerations. */
#define AT(label) "(" #label " - guest_code + 0x8000)"
#define SAY(byte) "mov $'" byte "', %al\n out %al, $0xf8\n"

asm(".pushsection .rodata.guest, \"a\", @progbits\n"
    "guest_code:\n"
    ".code16\n" SAY("r")
    "	lgdtl " AT(guest_gdtr) "\n"
    "	mov %cr0, %eax\n"
    "	or $1, %al\n" /* PE */
    "	mov %eax, %cr0\n"
    "	ljmpl $0x08, $" AT(guest_protected) "\n"
    ".code32\n"
    "guest_protected:\n"
    "	mov $0x10, %eax\n"
    "	mov %eax, %ds\n"
    "	mov %eax, %es\n"
    "	mov %eax, %ss\n" SAY("p")
    "	mov %cr4, %eax\n"
    "	or $0x20, %eax\n" /* PAE */
    "	mov %eax, %cr4\n"
    "	mov $0x1000, %eax\n"
    "	mov %eax, %cr3\n"
    "	mov $0xc0000080, %ecx\n"
    "	rdmsr\n"
    "	or $0x101, %eax\n" /* EFER: LME, SCE */
    "	wrmsr\n"
    "	mov %cr0, %eax\n"
    "	or $0x80000000, %eax\n" /* PG */
    "	mov %eax, %cr0\n"
    "	ljmpl $0x18, $" AT(guest_long) "\n"
    ".code64\n"
    "guest_long:\n"
    "	mov $0x7f00, %esp\n" SAY("l")
    "	lidt " AT(guest_idtr) "\n"
    "	mov $0x40, %eax\n"
    "	ltr %ax\n"
    "	ud2\n"
    "	mov $0xc0000081, %ecx\n" /* STAR: the kernel's segments */
    "	xor %eax, %eax\n"
    "	mov $0x18, %edx\n"
    "	wrmsr\n"
    "	mov $0xc0000082, %ecx\n" /* LSTAR */
    "	mov $" AT(guest_call) ", %eax\n"
    "	xor %edx, %edx\n"
    "	wrmsr\n"
    "	push $0x33\n"
    "	push $0x9f00\n"
    "	push $2\n"
    "	push $0x3b\n"
    "	push $" AT(guest_user) "\n"
    "	iretq\n"
    "guest_user:\n"
    "	syscall\n"
    "	ud2\n"
    "guest_invalid:\n" SAY("x")
    "	addq $2, (%rsp)\n"
    "	iretq\n"
    "guest_call:\n" SAY("u")
    "	hlt\n"
    "	.balign 8\n"
    "guest_gdt:\n"
    "	.quad 0\n"
    "	.quad 0x00cf9b000000ffff\n" /* 08: 32-bit code */
    "	.quad 0x00cf93000000ffff\n" /* 10: data */
    "	.quad 0x00af9b000000ffff\n" /* 18: code of the kernel */
    "	.quad 0x00cf93000000ffff\n" /* 20: data of the kernel */
    "	.quad 0\n"
    "	.quad 0x00cff3000000ffff\n" /* 30: data of the user */
    "	.quad 0x00affb000000ffff\n" /* 38: code of the user */
    "	.quad 0x0000890060000067, 0\n" /* 40: the task's state */
    "guest_idt:\n"
    "	.fill 12, 8, 0\n"
    "	.word " AT(guest_invalid) ", 0x18, 0x8e00, 0\n" /* 6: invalid operation code */
    "	.quad 0\n"
    "guest_gdtr:\n"
    "	.word guest_idt - guest_gdt - 1\n"
    "	.quad " AT(guest_gdt) "\n"
    "guest_idtr:\n"
    "	.word guest_gdtr - guest_idt - 1\n"
    "	.quad " AT(guest_idt) "\n"
    "guest_end:\n"
    ".popsection\n");

extern const char guest_code[], guest_end[];

void guest_prepare(char *memory)
{
	enum { PRESENT = 1, WRITABLE = 2, USER = 4, LARGE = 0x80 };
	const char *from = guest_code;
	for (char *to = memory + GUEST_CODE; from < guest_end;)
		*to++ = *from++;
	uint64_t *tables = (uint64_t *)(memory + TABLES);
	const unsigned next = 4096 / sizeof *tables;
	tables[0] = (TABLES + 4096) | PRESENT | WRITABLE | USER;
	tables[next] = (TABLES + 2 * 4096) | PRESENT | WRITABLE | USER;
	tables[2 * next] = PRESENT | WRITABLE | USER | LARGE;
	*(uint32_t *)(memory + TSS + 4) = KERNEL_STACK;
}

#endif
