/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CPU_H
#define CPU_H

#include "layout.h"
#include "mailbox.h"
#include "statistics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GDT_ENTRIES 16
#define TSS_SIZE 104
#define KERNEL_STACK 4096
#define USER_STACK 32768

struct gdtr {
	uint16_t limit;
	uint64_t base;
} __attribute__((packed));

/* What a vCPU has to itself. GS points at it. */
struct cpu {
	struct cpu *self;
	volatile uint64_t pending; /* set by each interrupt: trap_halt returns at once */
	volatile uint64_t bells, devices, timers; /* interrupts taken, by kind */
	volatile uint64_t halts;
	uint64_t kernel_stack_top, user_stack_top;
	struct gdtr gdtr;
	uint64_t gdt[GDT_ENTRIES] __attribute__((aligned(16)));
	uint8_t tss[TSS_SIZE] __attribute__((aligned(16)));

	uint32_t id;
	uint32_t bell; /* enum bell, or BELL_RUNG + who rang */
	bool online;
	bool resting;            /* background.c: until the timer comes */
	uint64_t timers_at_rest; /* timers when the rest began */
	uint64_t rest_left_us;   /* after the timer that is on */
	uint64_t us_left;        /* of a burst */
	volatile bool lock_granted;
	struct mailbox mailbox;
	struct statistics statistics;

	uint8_t kernel_stack[KERNEL_STACK] __attribute__((aligned(16)));
	uint8_t user_stack[USER_STACK] __attribute__((aligned(16)));
} __attribute__((aligned(4096)));

_Static_assert(offsetof(struct cpu, self) == CPU_SELF, "layout.h");
_Static_assert(offsetof(struct cpu, pending) == CPU_PENDING, "layout.h");
_Static_assert(offsetof(struct cpu, bells) == CPU_BELLS, "layout.h");
_Static_assert(offsetof(struct cpu, devices) == CPU_DEVICES, "layout.h");
_Static_assert(offsetof(struct cpu, timers) == CPU_TIMERS, "layout.h");
_Static_assert(offsetof(struct cpu, halts) == CPU_HALTS, "layout.h");
_Static_assert(offsetof(struct cpu, kernel_stack_top) == CPU_KERNEL_STACK, "layout.h");
_Static_assert(offsetof(struct cpu, user_stack_top) == CPU_USER_STACK, "layout.h");
_Static_assert(offsetof(struct cpu, gdtr) == CPU_GDTR, "layout.h");

extern struct cpu cpus[MOST_CPUS];
extern uint32_t cpu_count;

static inline struct cpu *this_cpu(void)
{
	struct cpu *cpu;

	asm volatile("movq %%gs:%c1, %0" : "=r"(cpu) : "i"(CPU_SELF));
	return cpu;
}

static inline void relax(void)
{
	asm volatile("pause");
}

#endif
