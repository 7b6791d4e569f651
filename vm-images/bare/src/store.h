/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values, as many as have a place; any vCPU may ask. */
#ifndef STORE_H
#define STORE_H

#include "cpu.h"
#include "text.h"

#define STORE_KEY_BYTES 250
#define STORE_VALUE_BYTES 1024

struct value {
	uint32_t flags, bytes;
	uint8_t data[STORE_VALUE_BYTES];
};

/* A copy: the place may be another key's as soon as this returns. False: the key is not there. */
bool store_get(struct cpu *cpu, struct text key, struct value *value);

/* Puts it in, maybe in the place of another. Neither may be longer than fits. */
void store_set(struct cpu *cpu, struct text key, uint32_t flags, struct text data);

/* False: it was not there. */
bool store_delete(struct cpu *cpu, struct text key);

#endif
