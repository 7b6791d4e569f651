/* SPDX-License-Identifier: Apache-2.0 */
/* The local interrupt controller; QEMU's and KVM's count 1 ns a tick where nothing divides. */
#ifndef LAPIC_H
#define LAPIC_H

#include "layout.h"

#include <stdint.h>

#define LAPIC_SPURIOUS 0xf0
#define LAPIC_COMMAND 0x300
#define LAPIC_COMMAND_TO 0x310
#define LAPIC_TIMER 0x320
#define LAPIC_TIMER_START 0x380
#define LAPIC_TIMER_NOW 0x390
#define LAPIC_TIMER_DIVIDE 0x3e0

#define LAPIC_DIVIDE_BY_1 0xb
#define LAPIC_MASKED 0x10000
#define LAPIC_ENABLED 0x100
#define COMMAND_FIXED 0x4000
#define COMMAND_INIT 0x4500
#define COMMAND_START 0x4600

static inline volatile uint32_t *mmio(uint64_t address)
{
	return (volatile uint32_t *)address;
}

static inline void lapic_write(unsigned int lapic_register, uint32_t value)
{
	*mmio(LAPIC + lapic_register) = value;
}

static inline void lapic_enable(void)
{
	lapic_write(LAPIC_SPURIOUS, LAPIC_ENABLED | VECTOR_SPURIOUS);
	lapic_write(LAPIC_TIMER_DIVIDE, LAPIC_DIVIDE_BY_1);
}

static inline void lapic_command(uint32_t to, uint32_t command)
{
	lapic_write(LAPIC_COMMAND_TO, to << 24);
	lapic_write(LAPIC_COMMAND, command);
}

/* One timer interrupt, so long from now. */
static inline void lapic_timer_arm(uint32_t ns)
{
	lapic_write(LAPIC_TIMER, VECTOR_TIMER);
	lapic_write(LAPIC_TIMER_START, ns);
}

static inline void lapic_delay(uint32_t ns)
{
	lapic_write(LAPIC_TIMER, LAPIC_MASKED | VECTOR_TIMER);
	lapic_write(LAPIC_TIMER_START, ns);
	while (*mmio(LAPIC + LAPIC_TIMER_NOW))
		;
}

#endif
