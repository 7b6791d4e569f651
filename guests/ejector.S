/* The boot sector of a guest that gives a CPU back when it is asked to.

   QEMU's hot-plug registers, docs/specs/acpi_cpu_hotplug.rst, at 0xcd8 on q35: writing a CPU's number to the
   first double word selects it (and once 0 ends the old interface); bit 2 of the byte at +4 is set while that
   CPU shall go; bit 3 written there lets it go. Looked at with every tick of the clock, 18 times a second. */
.code16
.globl _start
_start:
	sti
	xorl	%eax, %eax
	movw	$0xcd8, %dx
	outl	%eax, %dx
again:
	hlt
	movl	$3, %ecx
each:
	movw	$0xcd8, %dx
	movl	%ecx, %eax
	outl	%eax, %dx
	movw	$0xcdc, %dx
	inb	%dx, %al
	testb	$4, %al
	jz	next
	movb	$8, %al
	outb	%al, %dx
next:
	decl	%ecx
	jnz	each
	jmp	again

.org 510
.word 0xaa55
