/* SPDX-License-Identifier: Apache-2.0 */
#include "arrivals.h"

#include "clock.h"
#include "distribution.h"
#include "fail.h"
#include "memory.h"
#include "output.h"

#include <stdio.h>

struct process {
	struct rng rng;
	double mean_gap_ns;
	double at_ns;
};

static struct process process_start(uint64_t seed, double rate)
{
	struct process process = {.mean_gap_ns = (double)NS_PER_S / rate};

	rng_seed(&process.rng, seed, RNG_ARRIVALS, 0);
	return process;
}

static double process_next(struct process *process)
{
	process->at_ns += distribution_draw(&process->rng, SHAPE_EXP, 0.0, process->mean_gap_ns);
	return process->at_ns;
}

static size_t count_arrivals(uint64_t seed, double rate, uint64_t total_ns)
{
	struct process process = process_start(seed, rate);
	size_t count = 0;

	while (process_next(&process) < (double)total_ns)
		count++;
	return count;
}

struct arrivals arrivals_make(uint64_t seed, double rate, uint64_t warmup_ns, uint64_t total_ns)
{
	struct arrivals arrivals = {0};
	struct process process = process_start(seed, rate);

	if (rate * (double)total_ns / (double)NS_PER_S > (double)ARRIVALS_LIMIT)
		fail_option("rate", "%g/s for %g s is more than %llu requests", rate,
			    (double)total_ns / (double)NS_PER_S, ARRIVALS_LIMIT);
	arrivals.count = count_arrivals(seed, rate, total_ns);
	arrivals.offsets_ns = memory_touched(arrivals.count, sizeof(uint64_t));
	for (size_t i = 0; i < arrivals.count; i++) {
		arrivals.offsets_ns[i] = (uint64_t)process_next(&process);
		if (arrivals.offsets_ns[i] < warmup_ns)
			arrivals.first_measured = i + 1;
	}
	return arrivals;
}

void arrivals_write(const struct arrivals *arrivals, const char *path)
{
	FILE *file = output_open(path);

	fwrite(arrivals->offsets_ns, sizeof(uint64_t), arrivals->count, file);
	output_close(file, path);
}
