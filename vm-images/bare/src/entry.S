/* SPDX-License-Identifier: Apache-2.0 */
/* From QEMU's PVH entry (32 bits, no paging) to CPL 3 of the first vCPU; the others come by trampoline.S. */
#include "layout.h"

	.section .note, "a", @note	/* XEN_ELFNOTE_PHYS32_ENTRY: this is what makes it PVH */
	.long 4, 4, 18
	.asciz "Xen"
	.long pvh_entry

	.text
	.code32
	.globl pvh_entry
pvh_entry:
	cli
	movl %ebx, start_info
	movl $boot_stack_top, %esp
	call make_page_tables
	call enter_long_mode
	ljmp $KERNEL_CODE, $first_cpu

make_page_tables:
	movl $low_directories + 7, top_table
	movl $low_directory + 7, low_directories
	movl $mmio_directory + 7, low_directories + 8
	movl $low_directory, %edi
	movl $0x87, %eax		/* present, writable, user, 2 MiB */
	call fill_directory
	movl $mmio_directory, %edi
	movl $0xc0000000 + 0x9f, %eax	/* that, and not cached */
fill_directory:
	movl $512, %ecx
1:	movl %eax, (%edi)
	addl $0x200000, %eax
	addl $8, %edi
	decl %ecx
	jnz 1b
	ret

	.globl enter_long_mode
enter_long_mode:
	lgdt boot_gdtr
	movl $0x620, %eax		/* CR4: PAE; OSFXSR, OSXMMEXCPT as every kernel has them */
	movl %eax, %cr4
	movl $top_table, %eax
	movl %eax, %cr3
	movl $0xc0000080, %ecx		/* EFER: SCE, LME, NXE */
	rdmsr
	orl $0x901, %eax
	wrmsr
	movl $0x80010033, %eax		/* CR0: PG, WP, NE, ET, MP, PE */
	movl %eax, %cr0
	ret

	.code64
first_cpu:
	movw $KERNEL_DATA, %ax
	movw %ax, %ds
	movw %ax, %es
	movw %ax, %ss
	movl $boot_stack_top, %esp
	call boot
	movq %rax, %rdi

	.globl to_user
to_user:				/* rdi: this vCPU's struct cpu */
	lgdt CPU_GDTR(%rdi)
	lidt idtr
	movw $TASK, %ax
	ltr %ax
	movl $0xc0000101, %ecx		/* GS base */
	movl %edi, %eax
	xorl %edx, %edx
	wrmsr
	pushq $USER_DATA
	pushq CPU_USER_STACK(%rdi)
	pushq $USER_FLAGS
	pushq $USER_CODE
	pushq $cpu_main
	iretq

	.data
	.balign 16
	.globl boot_gdt
boot_gdt:
	.quad 0, 0x00cf9b000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff
boot_gdtr:
	.word 0x1f
	.long boot_gdt
	.balign 8
idtr:	.word 0xfff
	.quad idt
	.balign 8
	.globl start_info
start_info:
	.quad 0

	.bss
	.balign 4096
top_table:
	.skip 4096
low_directories:
	.skip 4096
low_directory:
	.skip 4096
mmio_directory:
	.skip 4096
	.globl idt
idt:	.skip 4096
	.skip 16384
boot_stack_top:
