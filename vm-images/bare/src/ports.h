/* SPDX-License-Identifier: Apache-2.0 */
/* At CPL 0 only. */
#ifndef PORTS_H
#define PORTS_H

#include <stdint.h>

static inline void port_write8(uint16_t port, uint8_t value)
{
	asm volatile("outb %0, %1" : : "a"(value), "d"(port));
}

static inline void port_write16(uint16_t port, uint16_t value)
{
	asm volatile("outw %0, %1" : : "a"(value), "d"(port));
}

static inline uint8_t port_read8(uint16_t port)
{
	uint8_t value;

	asm volatile("inb %1, %0" : "=a"(value) : "d"(port));
	return value;
}

static inline void port_write32(uint16_t port, uint32_t value)
{
	asm volatile("outl %0, %1" : : "a"(value), "d"(port));
}

static inline uint32_t port_read32(uint16_t port)
{
	uint32_t value;

	asm volatile("inl %1, %0" : "=a"(value) : "d"(port));
	return value;
}

#endif
