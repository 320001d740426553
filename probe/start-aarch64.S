/* The entry point, the system call, and the return from a signal handler, on
 * aarch64. The kernel's calling convention is in syscall(2). */
#include <asm/unistd.h>

	.text
	.globl	_start
_start:
	mov	x29, #0
	mov	x30, #0
	mov	x0, sp
	bl	probe_start

	.globl	syscall6
	.type	syscall6, %function
syscall6:
	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	svc	#0
	ret

	.globl	signal_return
	.type	signal_return, %function
signal_return:
	mov	x8, #__NR_rt_sigreturn
	svc	#0

	.section .note.GNU-stack, "", %progbits
