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
	const struct arrival_rate *rate;
	double at_ns;
};

static struct process process_start(uint64_t seed, const struct arrival_rate *rate)
{
	struct process process = {.rate = rate};

	rng_seed(&process.rng, seed, RNG_ARRIVALS, 0);
	return process;
}

/*
 * A gap that crosses the step is stretched or shortened behind it: exactly a Poisson process of both
 * rates, and the arrivals before the step are those of a run without one.
 */
static double process_next(struct process *process)
{
	const struct arrival_rate *rate = process->rate;
	double step_ns = (double)rate->step_ns;
	double gap = distribution_draw(&process->rng, SHAPE_EXP, 0.0, (double)NS_PER_S);

	if (!(rate->step_rate > 0.0))
		return process->at_ns += gap / rate->rate;
	if (process->at_ns < step_ns) {
		double before = (step_ns - process->at_ns) * rate->rate;

		if (gap < before)
			return process->at_ns += gap / rate->rate;
		gap -= before;
		process->at_ns = step_ns;
	}
	return process->at_ns += gap / rate->step_rate;
}

static size_t count_arrivals(uint64_t seed, const struct arrival_rate *rate, uint64_t total_ns)
{
	struct process process = process_start(seed, rate);
	size_t count = 0;

	while (process_next(&process) < (double)total_ns)
		count++;
	return count;
}

static void refuse_too_many(const char *option, double rate, uint64_t total_ns)
{
	if (rate * (double)total_ns / (double)NS_PER_S > (double)ARRIVALS_LIMIT)
		fail_option(option, "%g/s for %g s is more than %llu requests", rate,
			    (double)total_ns / (double)NS_PER_S, ARRIVALS_LIMIT);
}

struct arrivals arrivals_make(uint64_t seed, const struct arrival_rate *rate, uint64_t warmup_ns,
			      uint64_t total_ns)
{
	struct arrivals arrivals = {0};
	struct process process = process_start(seed, rate);

	refuse_too_many("rate", rate->rate, total_ns);
	refuse_too_many("step-rate", rate->step_rate, total_ns);
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
