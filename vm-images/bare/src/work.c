/* SPDX-License-Identifier: Apache-2.0 */
#include "work.h"

#include "options.h"

void work_us(uint64_t us)
{
	uint64_t state = us | 1;

	for (uint64_t rounds = us * options.rounds_per_us; rounds; rounds--) {
		state ^= state << 13;
		state ^= state >> 7;
		asm volatile("" : "+r"(state));
	}
}
