/* SPDX-License-Identifier: Apache-2.0 */
#include "service_options.h"

#include "distribution.h"
#include "fail.h"

#include <string.h>

static const char *const variant_names[] = {"fanout", "pipeline", "convoy", "pretend", NULL};
static const char *const wakes_names[] = {"none", "logger", "peer", NULL};

static const struct service_options defaults = {
	.run = RUN_DEFAULTS,
	.serial_us = 500.0,
	.helper_us = 600.0,
	.sigma = 1.0,
	.imbalance = 1.0,
	.helpers = 2,
	.stages = 4,
	.hold_us = 3000.0,
	.hold_rate = 20.0,
	.lock_us = 20.0,
	.background_burst_us = 10000.0,
	.background_rate = 10.0,
	.logger_us = 20.0,
	.peer_us = 5000.0,
};

#define LONGEST_US 60e6
#define MOST_THREADS 1024

/* An option that the chosen variant would silently ignore is a mistake in an experiment. */
static void refuse_unused(const struct command_line *line, const struct service_options *o)
{
	static const struct {
		const char *option;
		unsigned int variants; /* bits */
	} uses[] = {
		{"helpers", 1 << VARIANT_FANOUT | 1 << VARIANT_CONVOY | 1 << VARIANT_PRETEND},
		{"joins", 1 << VARIANT_FANOUT},
		{"tail-us", 1 << VARIANT_FANOUT | 1 << VARIANT_CONVOY},
		{"stages", 1 << VARIANT_PIPELINE},
		{"imbalance", 1 << VARIANT_FANOUT | 1 << VARIANT_PIPELINE},
		{"hold-us", 1 << VARIANT_CONVOY},
		{"hold-rate", 1 << VARIANT_CONVOY},
		{"lock-us", 1 << VARIANT_CONVOY},
		{"alternate-s", 1 << VARIANT_PRETEND},
	};

	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		if (cli_given(line, uses[i].option) && !(uses[i].variants & 1 << o->variant))
			fail_option(uses[i].option, "has no meaning for --variant %s",
				    variant_names[o->variant]);
	if (o->variant == VARIANT_CONVOY && !o->helpers)
		fail_option("helpers", "must be at least 1 for --variant convoy, got '0'");
	if (o->variant == VARIANT_PRETEND && (!o->helpers || o->helpers % 2))
		fail_option("helpers", "must be even and at least 2 for --variant pretend, got '%llu'",
			    (unsigned long long)o->helpers);
	if (o->joins && !o->helpers)
		fail_option("joins", "needs --helpers of at least 1");
	if (cli_given(line, "sigma") && o->distribution != SHAPE_LOGNORMAL)
		fail_option("sigma", "needs --distribution lognormal");
	if (o->answers && !o->feeder)
		fail_option("answers", "needs --feeder");
	if (cli_given(line, "background-from") && !o->background)
		fail_option("background-from", "needs --background of at least 1");
	if (o->background_wakes != WAKES_NONE && !o->background)
		fail_option("background-wakes", "needs --background of at least 1");
}

struct command_line service_parse(struct service_options *o, char **arguments)
{
	struct option_spec specs[] = {
		RUN_OPTIONS(&o->run),
		CHOICE("variant", &o->variant, variant_names, "fanout, pipeline, convoy or pretend"),
		COUNT("helpers", &o->helpers, 0, MOST_THREADS, "helper (convoy: worker, pretend: actor) threads"),
		COUNT("stages", &o->stages, 1, MOST_THREADS, "pipeline threads behind main"),
		REAL("serial-us", &o->serial_us, 0.0, LONGEST_US, "mean CPU time in main, before"),
		REAL("helper-us", &o->helper_us, 0.0, LONGEST_US, "mean CPU time in each helper"),
		FLAG("joins", &o->joins, "main works as long as a helper, beside them"),
		REAL("tail-us", &o->tail_us, 0.0, LONGEST_US, "mean CPU time after the helpers"),
		CHOICE("distribution", &o->distribution, distribution_names,
		       "of the lengths: exp, fixed or lognormal"),
		REAL_ABOVE("sigma", &o->sigma, 0.0, 10.0, "lognormal's sigma"),
		REAL("imbalance", &o->imbalance, 1.0, 1000.0, "one helper or stage takes X times longer"),
		CHOICE("wake", &o->wake, gate_kind_names, "wake threads by futex or eventfd"),
		FLAG("feeder", &o->feeder, "another process delivers the requests by an eventfd"),
		FLAG("answers", &o->answers, "and is woken by each answer"),
		REAL("hold-us", &o->hold_us, 0.0, LONGEST_US, "CPU time the holder keeps the lock"),
		REAL_ABOVE("hold-rate", &o->hold_rate, 0.0, 1e5, "times per second it takes it, Poisson"),
		REAL("lock-us", &o->lock_us, 0.0, LONGEST_US, "CPU time a worker keeps the lock"),
		REAL("alternate-s", &o->alternate_s, 0.0, 1e6,
		     "actors idle and compute for so many seconds in turn, 0: they share a turn"),
		COUNT("background", &o->background, 0, MOST_THREADS, "background threads"),
		REAL_ABOVE("background-burst-us", &o->background_burst_us, 0.0, LONGEST_US,
			   "CPU time of a burst, fixed"),
		REAL_ABOVE("background-rate", &o->background_rate, 0.0, 1e5,
			   "bursts per second of each, Poisson"),
		REAL("background-from", &o->background_from, 0.0, 1e6,
		     "seconds from the start, warm-up included, before the first"),
		CHOICE("background-wakes", &o->background_wakes, wakes_names,
		       "none, logger (each ms of a burst) or peer (each burst)"),
		REAL("logger-us", &o->logger_us, 0.0, LONGEST_US, "CPU time of the logger per wake-up"),
		REAL("peer-us", &o->peer_us, 0.0, LONGEST_US, "CPU time of the peer per wake-up"),
		COUNT("pin-from", &o->pin_from, 0, MOST_THREADS,
		      "pins each thread: main to the CPU with this number of those allowed, the others after it"),
		REAL("iterations-per-us", &o->iterations_per_us, 0.0, 1e6,
		     "speed of the work loop, 0: calibrate"),
	};
	static struct option_spec kept[sizeof(specs) / sizeof(specs[0])];
	struct command_line line = {
		.subcommand = "service",
		.summary = "Serves Poisson requests: main works, its helpers work, main ends the request.",
		.options = kept,
		.count = sizeof(specs) / sizeof(specs[0]),
	};

	*o = defaults;
	memcpy(kept, specs, sizeof(specs)); /* the result is written after this call */
	cli_parse(&line, arguments);
	o->pinned = cli_given(&line, "pin-from");
	refuse_unused(&line, o);
	return line;
}
