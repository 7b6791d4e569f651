/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARRIVALS_H
#define ARRIVALS_H

#include <stddef.h>
#include <stdint.h>

/* More requests than this would need gigabytes of samples. */
#define ARRIVALS_LIMIT 20000000ULL

/* How many requests per second; from `step_ns` on `step_rate`, unless that is 0. */
struct arrival_rate {
	double rate, step_rate;
	uint64_t step_ns;
};

/* A Poisson process in [0, warm-up + seconds), known whole before the run starts. */
struct arrivals {
	uint64_t *offsets_ns; /* ascending, from the start of the run */
	size_t count;
	size_t first_measured; /* the earlier ones fall into the warm-up */
};

/* Depends on its arguments only. */
struct arrivals arrivals_make(uint64_t seed, const struct arrival_rate *rate, uint64_t warmup_ns,
			      uint64_t total_ns);

/* Writes all offsets as little-endian uint64. */
void arrivals_write(const struct arrivals *arrivals, const char *path);

#endif
