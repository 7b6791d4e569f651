/* SPDX-License-Identifier: Apache-2.0 */
/* What assembly and C both have to know. */
#ifndef LAYOUT_H
#define LAYOUT_H

/* The low GiB of memory is mapped as it is; the top GiB of the first four, where the devices are, is mapped behind it,
 * so that an instruction reaches them with a plain 32-bit address. */
#define MMIO(physical) ((physical) - 0x80000000)
#define LAPIC MMIO(0xfee00000)
#define LAPIC_EOI 0xb0

#define TRAMPOLINE 0x8000 /* where the other vCPUs begin, in real mode */
#define TRAMPOLINE_STACK 0x9000

/* Selectors. */
#define KERNEL_CODE32 0x08
#define KERNEL_CODE 0x10
#define KERNEL_DATA 0x18
#define USER_DATA 0x2b
#define USER_CODE 0x33
#define TASK 0x40

/* Flags of a vCPU that goes to CPL 3: interrupts on, and IOPL 3. */
#define USER_FLAGS 0x3202

/* Vectors. Of INT n from CPL 3 an emulating host knows only 3 and 4. */
#define VECTOR_PRINT 3
#define VECTOR_HALT 4
#define VECTOR_BELL 0x40
#define VECTOR_DEVICE 0x41
#define VECTOR_TIMER 0x42
#define VECTOR_SPURIOUS 0xff

/* Offsets in struct cpu (cpu.h). */
#define CPU_SELF 0
#define CPU_PENDING 8
#define CPU_BELLS 16
#define CPU_DEVICES 24
#define CPU_TIMERS 32
#define CPU_HALTS 40
#define CPU_KERNEL_STACK 48
#define CPU_USER_STACK 56
#define CPU_GDTR 64

#define PORT_CONSOLE 0xe9 /* QEMU's isa-debugcon */
#define PORT_EXIT 0x501   /* QEMU's isa-debug-exit */

#endif
