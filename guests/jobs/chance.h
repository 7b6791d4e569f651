/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that look random and are the same in every run: xorshift64* (Vigna 2016,
 * doi:10.1145/2845077).
 */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

struct chance {
	uint64_t state; /* any number but 0 */
};

static inline uint64_t chance_next(struct chance *chance)
{
	chance->state ^= chance->state >> 12;
	chance->state ^= chance->state << 25;
	chance->state ^= chance->state >> 27;
	return chance->state * 0x2545F4914F6CDD1DULL;
}

/* From 0 up to, but without, `end`. */
static inline unsigned chance_below(struct chance *chance, unsigned end)
{
	return (unsigned)((chance_next(chance) >> 32) % end);
}

#endif
