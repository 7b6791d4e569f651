/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RNG_H
#define RNG_H

#include <stdint.h>

struct rng {
	uint64_t state[4];
};

/* What a stream of random numbers is for: streams of one seed are independent of each other. */
enum rng_purpose {
	RNG_ARRIVALS,
	RNG_STAGE_LENGTHS,
	RNG_BACKGROUND,
	RNG_HOLDER,
	RNG_REQUESTS,
	RNG_PRELOAD,
	RNG_THREADS,
	RNG_SLEEPS,
};

void rng_seed(struct rng *rng, uint64_t seed, enum rng_purpose purpose, uint64_t index);
uint64_t rng_next(struct rng *rng);
double rng_unit(struct rng *rng); /* uniform in (0, 1] */
uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high); /* both included */

#endif
