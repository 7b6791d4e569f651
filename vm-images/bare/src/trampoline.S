/* SPDX-License-Identifier: Apache-2.0 */
/* Copied to TRAMPOLINE: a vCPU after INIT and SIPI, from real mode to CPL 3. */
#include "layout.h"

#define MOVED(label) (TRAMPOLINE + (label - trampoline))

	.text
	.code16
	.globl trampoline, trampoline_end
trampoline:
	cli
	xorw %ax, %ax
	movw %ax, %ds
	lgdtl MOVED(trampoline_gdtr)
	movl $0x11, %eax		/* CR0: ET, PE */
	movl %eax, %cr0
	ljmpl $KERNEL_CODE32, $MOVED(protected_mode)

	.code32
protected_mode:
	movw $KERNEL_DATA, %ax
	movw %ax, %ds
	movw %ax, %ss
	movl $TRAMPOLINE_STACK, %esp
	movl $enter_long_mode, %eax	/* not by an offset: this code was moved */
	call *%eax
	ljmp $KERNEL_CODE, $MOVED(long_mode)

	.code64
long_mode:
	movl $cpu_to_start, %eax
	movq (%rax), %rdi
	movq CPU_KERNEL_STACK(%rdi), %rsp
	movq $to_user, %rax
	jmp *%rax

	.balign 8
trampoline_gdtr:
	.word 0x1f
	.long boot_gdt
trampoline_end:
