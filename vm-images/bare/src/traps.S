/* SPDX-License-Identifier: Apache-2.0 */
/* All that runs at CPL 0 once a vCPU is up. An emulating host takes 1.5 us for an instruction here: they are few. */
#include "layout.h"

	.text
	.code64

	.macro INTERRUPT name, counter
	.globl \name
\name:	movq $1, %gs:CPU_PENDING
	incq %gs:\counter
	movl $0, LAPIC + LAPIC_EOI
	iretq
	.endm

	INTERRUPT trap_bell, CPU_BELLS
	INTERRUPT trap_device, CPU_DEVICES
	INTERRUPT trap_timer, CPU_TIMERS

	.globl trap_spurious
trap_spurious:
	iretq

	/* Sleeps until an interrupt, unless one came since `pending` was cleared. STI takes effect after HLT. */
	.globl trap_halt
trap_halt:
	cmpq $0, %gs:CPU_PENDING
	jne 1f
	incq %gs:CPU_HALTS
	sti
	hlt
	cli
1:	iretq

	.globl trap_port
trap_port:
	outb %al, %dx
	iretq

	.balign 16
	.globl exceptions
exceptions:
	.set vector, 0
	.rept 32
	.balign 16
	.if !((1 << vector) & 0x27d00)	/* these have an error code of their own */
	pushq $0
	.endif
	pushq $vector
	jmp exception
	.set vector, vector + 1
	.endr

	/* Says vector, error code, rip, cs, flags, rsp and ss, then ends the machine. */
exception:
	movw $PORT_CONSOLE, %dx
	movq %rsp, %rsi
	movl $7, %ebx
1:	movl $'!', %eax
	outb %al, %dx
	lodsq
	movq %rax, %rdi
	movl $16, %ecx
2:	rolq $4, %rdi
	movl %edi, %eax
	andl $15, %eax
	addl $'0', %eax
	cmpl $'9', %eax
	jbe 3f
	addl $'a' - '9' - 1, %eax
3:	outb %al, %dx
	decl %ecx
	jnz 2b
	decl %ebx
	jnz 1b
	movl $'\n', %eax
	outb %al, %dx
	movw $PORT_EXIT, %dx
	outb %al, %dx
4:	hlt
	jmp 4b
