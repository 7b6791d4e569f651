/* SPDX-License-Identifier: Apache-2.0 */
#include "descriptors.h"

#include "memory.h"

#define CODE64_KERNEL 0x00af9b000000ffff
#define DATA_KERNEL 0x00cf93000000ffff
#define DATA_USER 0x00cff3000000ffff
#define CODE64_USER 0x00affb000000ffff
#define TSS_AVAILABLE 0x0000890000000000
#define INTERRUPT_GATE 0x8e00ul
#define TSS_RSP0 4
#define TSS_IO_MAP 102
#define EXCEPTIONS 32
#define EXCEPTION_BYTES 16
#define VECTORS 256

extern uint64_t idt[];
extern uint8_t exceptions[], trap_bell[], trap_device[], trap_timer[], trap_spurious[], trap_halt[], trap_port[];

static void set_gate(unsigned int vector, const uint8_t *handler, unsigned long privilege)
{
	uint64_t address = (uint64_t)handler;

	idt[2 * vector] = (address & 0xffff) | (uint64_t)KERNEL_CODE << 16 |
			  (INTERRUPT_GATE | privilege << 13) << 32 | (address >> 16 & 0xffff) << 48;
	idt[2 * vector + 1] = address >> 32;
}

void descriptors_fill_idt(void)
{
	for (unsigned int vector = 0; vector < VECTORS; vector++)
		set_gate(vector, vector < EXCEPTIONS ? exceptions + EXCEPTION_BYTES * vector : trap_spurious, 0);
	set_gate(VECTOR_BELL, trap_bell, 0);
	set_gate(VECTOR_DEVICE, trap_device, 0);
	set_gate(VECTOR_TIMER, trap_timer, 0);
	set_gate(VECTOR_PRINT, trap_port, 3);
	set_gate(VECTOR_HALT, trap_halt, 3);
}

void descriptors_prepare(struct cpu *cpu, uint32_t id)
{
	uint64_t tss = (uint64_t)cpu->tss;
	uint16_t no_io_map = TSS_SIZE;

	cpu->self = cpu;
	cpu->id = id;
	cpu->kernel_stack_top = (uint64_t)cpu->kernel_stack + KERNEL_STACK;
	cpu->user_stack_top = (uint64_t)cpu->user_stack + USER_STACK - sizeof(uint64_t);
	cpu->gdt[KERNEL_CODE / 8] = CODE64_KERNEL;
	cpu->gdt[KERNEL_DATA / 8] = DATA_KERNEL;
	cpu->gdt[USER_DATA / 8] = DATA_USER;
	cpu->gdt[USER_CODE / 8] = CODE64_USER;
	cpu->gdt[TASK / 8] = TSS_AVAILABLE | (TSS_SIZE - 1) | (tss & 0xffffff) << 16 | (tss >> 24 & 0xff) << 56;
	cpu->gdt[TASK / 8 + 1] = tss >> 32;
	memcpy(cpu->tss + TSS_RSP0, &cpu->kernel_stack_top, sizeof(cpu->kernel_stack_top));
	memcpy(cpu->tss + TSS_IO_MAP, &no_io_map, sizeof(no_io_map));
	cpu->gdtr = (struct gdtr){sizeof(cpu->gdt) - 1, (uint64_t)cpu->gdt};
}
