/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLES_H
#define SAMPLES_H

#include "arrivals.h"

#include <stdint.h>

/* TailBench's lats.bin record: sojourn counts from the scheduled arrival, queue + service = sojourn. */
struct sample {
	uint64_t queue_ns;
	uint64_t service_ns;
	uint64_t sojourn_ns; /* 0: the request was not completed */
};

/* One sample per measured request, in arrival order; requests of the warm-up are ignored. */
struct samples {
	const struct arrivals *arrivals;
	struct sample *items;
	size_t count;
	uint64_t start_ns;
};

struct samples samples_make(const struct arrivals *arrivals);
void samples_begin(struct samples *samples, size_t request, uint64_t now_ns);
void samples_end(struct samples *samples, size_t request, uint64_t now_ns);
size_t samples_completed(const struct samples *samples);

/* Writes the completed ones as little-endian uint64 triples. */
void samples_write(const struct samples *samples, const char *path);

#endif
