/* The boot sector of a guest that powers off when its power button is pressed.

   ACPI's registers on q35, where SeaBIOS puts them: status at 0x600 and enable at 0x602, whose bits 8 are the
   button's; a 5 of S5 and the bit that says "now" into 0x604 powers off. With -DBUSY both vCPUs burn: the other
   one is woken by way of its local APIC and sent to 0x8000; else the guest looks with every tick of the clock.
   A letter on the first serial port says that it looks from now on: a button pressed earlier is lost. */
.code16
.globl _start
_start:
	cli
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	$0x602, %dx
	movw	$0x100, %ax
	outw	%ax, %dx
#ifdef BUSY
	lgdt	table
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	movw	$8, %bx
	movw	%bx, %es	/* its limit of 4 GiB stays when protected mode ends */
	andb	$0xfe, %al
	movl	%eax, %cr0
	movw	$0xfeeb, 0x8000	/* jmp to itself */
	movl	$0xfee00300, %edi
	movl	$0x000c4500, %es:(%edi)	/* INIT to all others */
	movl	$10000000, %ecx
1:	decl	%ecx
	jnz	1b
	movl	$0x000c4608, %es:(%edi)	/* begin at 0x8000 */
#endif
	movw	$0x3f8, %dx
	movb	$'U', %al
	outb	%al, %dx
	sti
again:
#ifdef BUSY
	movl	$1000000, %ecx	/* a look at a port takes a lock that QEMU's main thread wants, too */
2:	decl	%ecx
	jnz	2b
#else
	hlt
#endif
	movw	$0x600, %dx
	inw	%dx, %ax
	testb	$1, %ah
	jz	again
	movw	$0x604, %dx
	movw	$0x2000, %ax
	outw	%ax, %dx
	jmp	again

.balign 8
segments:
	.quad	0
	.quad	0x00cf92000000ffff
table:
	.word	. - segments - 1
	.long	segments

.org 510
.word 0xaa55
