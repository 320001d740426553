/* The entry point, the system call, and the return from a signal handler, on
 * x86_64. The kernel's calling convention is in syscall(2). */
#include <asm/unistd.h>

	.text
	.globl	_start
_start:
	xor	%ebp, %ebp
	mov	%rsp, %rdi
	and	$-16, %rsp
	call	probe_start

	.globl	syscall6
	.type	syscall6, @function
syscall6:
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
	syscall
	ret

	.globl	signal_return
	.type	signal_return, @function
signal_return:
	mov	$__NR_rt_sigreturn, %eax
	syscall

	.section .note.GNU-stack, "", @progbits
