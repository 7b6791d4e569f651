/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_H
#define RUN_H

#include "cli.h"
#include "crew.h"
#include "samples.h"

#include <stdbool.h>
#include <stdio.h>

/* A request that leaves its sender this much after its schedule is counted as a late send. */
#define LATE_NS (100 * NS_PER_US)

/* What service and memcached have in common. */
struct run_options {
	double seconds, warmup, rate, step_at, step_rate;
	uint64_t seed, start_at_ns;
	bool start_on_stdin;
	const char *out, *samples, *arrivals, *ready;
};

#define RUN_DEFAULTS {.seconds = 10.0, .warmup = 1.0, .rate = 100.0, .seed = 1}

#define RUN_OPTIONS(o)                                                                             \
	REAL_ABOVE("seconds", &(o)->seconds, 0.0, 1e6, "length of the measured part"),             \
	REAL("warmup", &(o)->warmup, 0.0, 1e6, "seconds before it, not measured"),                 \
	REAL_ABOVE("rate", &(o)->rate, 0.0, 1e7, "requests per second, Poisson"),                  \
	REAL("step-at", &(o)->step_at, 0.0, 1e6,                                                   \
	     "seconds from the start, warm-up included, when --step-rate begins"),                 \
	REAL("step-rate", &(o)->step_rate, 0.0, 1e7, "requests per second from then, 0: no step"), \
	COUNT("seed", &(o)->seed, 0, UINT64_MAX, "same seed, same arrivals and lengths"),          \
	COUNT("start-at-ns", &(o)->start_at_ns, 0, UINT64_MAX,                                     \
	      "CLOCK_MONOTONIC time of the start, 0: 50 ms after ready"),                          \
	FLAG("start-on-stdin", &(o)->start_on_stdin,                                               \
	     "that time is a line on standard input, read when everything is ready"),              \
	TEXT("out", &(o)->out, "file of the result, else standard output"),                        \
	TEXT("samples", &(o)->samples, "file of uint64 (queue, service, sojourn) ns per request"), \
	TEXT("arrivals", &(o)->arrivals, "file of the scheduled uint64 ns offsets"),               \
	TEXT("ready", &(o)->ready, "file of the ready line, else standard output")

struct run {
	const struct run_options *options;
	struct command_line *line;
	struct arrivals arrivals;
	struct samples samples;
	FILE *out;
	uint64_t start_ns, warmup_end_ns, nominal_end_ns; /* known once it is announced */
	uint64_t end_ns;
	uint64_t errors, late_sends; /* of the measured part */
	uint64_t unanswered_ns; /* what has no good answer counts as so late; 0: it counts nowhere */
};

/* Makes the schedule and the memory for its samples; opens the output, so that it fails early. */
void run_prepare(struct run *run, const struct run_options *options, struct command_line *line);

/*
 * Writes {"ready": true, "pid": .., "threads": {..}} and fixes the start, which is 0 there when it comes on
 * standard input later; feeder is 0 for none.
 */
void run_announce(struct run *run, const struct crew *crew, pid_t feeder);

/* The scheduled CLOCK_MONOTONIC time of a request. */
uint64_t run_scheduled_ns(const struct run *run, size_t request);

bool run_is_measured(const struct run *run, size_t request);

/* Starts the result: everything up to the throughput. */
struct json run_open_result(struct run *run);

/* Adds the latency summaries, ends the result and writes the samples. */
void run_close_result(struct run *run, struct json *json);

#endif
