/* The entry point and the system call on riscv64. The kernel's calling convention is in syscall(2). Signal handlers return
 * through the vDSO, because the kernel accepts no address for the return. */

	.text
	.globl	_start
_start:
	.option push
	.option norelax
	la	gp, __global_pointer$
	.option pop
	mv	a0, sp
	andi	sp, sp, -16
	call	probe_start

	.globl	syscall6
	.type	syscall6, @function
syscall6:
	mv	a7, a0
	mv	a0, a1
	mv	a1, a2
	mv	a2, a3
	mv	a3, a4
	mv	a4, a5
	mv	a5, a6
	ecall
	ret

	.section .note.GNU-stack, "", @progbits
