/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** 1.0 and SplitMix64, from the algorithms published by Blackman and Vigna. */
#include "rng.h"

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
	return (x << bits) | (x >> (64 - bits));
}

void rng_seed(struct rng *rng, uint64_t seed, enum rng_purpose purpose, uint64_t index)
{
	uint64_t state = seed;

	/* Each part passes through the mixer before the next one joins, so that (1, 2) is not (2, 1). */
	state = splitmix64(&state) ^ (uint64_t)purpose;
	state = splitmix64(&state) ^ index;
	for (int i = 0; i < 4; i++)
		rng->state[i] = splitmix64(&state);
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate_left(s[3], 45);
	return result;
}

double rng_unit(struct rng *rng)
{
	/* 53 random bits, shifted by one so that log() never sees 0. */
	return (double)((rng_next(rng) >> 11) + 1) * 0x1.0p-53;
}

uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high)
{
	/* The modulo bias is below 1e-9 for the ranges of this tool (bytes, keys, microseconds). */
	return low + rng_next(rng) % (high - low + 1);
}
