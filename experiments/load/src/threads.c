/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic vCPUs: threads that only burn, for a controller to manage. */
#include "burn.h"
#include "clock.h"
#include "crew.h"
#include "distribution.h"
#include "fail.h"
#include "memory.h"
#include "output.h"
#include "run.h"
#include "stop.h"
#include "subcommands.h"

#include <stdatomic.h>

#define MOST_THREADS 16384

struct options {
	uint64_t threads, seed;
	double burst_us, rate, seconds, iterations_per_us;
	bool spin;
	const char *out;
};

struct load {
	struct options options;
	struct crew crew;
	struct burner burner;
	struct latch started;
	uint64_t start_ns;
	atomic_ulong bursts;
};

struct vcpu {
	struct load *load;
	uint64_t index;
};

static void spin(struct load *load)
{
	while (!stop_requested()) {
		burn(&load->burner, load->options.burst_us);
		atomic_fetch_add(&load->bursts, 1);
	}
}

static void burst_at_random(struct load *load, uint64_t index)
{
	double mean_gap_ns = (double)NS_PER_S / load->options.rate;
	double at_ns = 0.0;
	struct rng rng;

	rng_seed(&rng, load->options.seed, RNG_THREADS, index);
	for (;;) {
		at_ns += distribution_draw(&rng, SHAPE_EXP, 0.0, mean_gap_ns);
		if (!stop_wait_until(load->start_ns + (uint64_t)at_ns))
			return;
		burn(&load->burner, load->options.burst_us);
		atomic_fetch_add(&load->bursts, 1);
	}
}

static void run_vcpu(void *argument)
{
	struct vcpu *vcpu = argument;

	latch_wait(&vcpu->load->started);
	if (vcpu->load->options.spin)
		spin(vcpu->load);
	else
		burst_at_random(vcpu->load, vcpu->index);
}

static void start_threads(struct load *load)
{
	uint64_t threads = load->options.threads;
	struct vcpu *vcpus = memory_touched(threads, sizeof(*vcpus));

	crew_init(&load->crew, threads);
	for (uint64_t i = 0; i < threads; i++) {
		vcpus[i] = (struct vcpu){load, i};
		crew_start(&load->crew, "vcpu", (int)i, ANY_CPU, run_vcpu, &vcpus[i]);
	}
	crew_wait_started(&load->crew);
}

static void announce(const struct load *load)
{
	struct json json = output_begin_ready(stdout);

	json_open_array(&json, "tids");
	for (size_t i = 0; i < load->crew.count; i++)
		json_count(&json, NULL, (uint64_t)load->crew.members[i].tid);
	json_close_array(&json);
	output_end(&json, NULL);
}

/* Without a length the signal is the normal end. */
static bool is_interrupted(const struct options *o)
{
	return o->seconds > 0.0 && stop_interrupted();
}

static void write_result(struct load *load, const struct command_line *line, FILE *file)
{
	struct json json = output_begin(file, line, load->options.seed, is_interrupted(&load->options));
	uint64_t bursts = atomic_load(&load->bursts);

	json_real(&json, "iterations_per_us", load->burner.iterations_per_us);
	json_real(&json, "seconds_measured",
		  (double)(clock_now_ns() - load->start_ns) / (double)NS_PER_S);
	json_count(&json, "bursts", bursts);
	json_real(&json, "cpu_s", (double)clock_process_cpu_ns() / (double)NS_PER_S);
	output_end(&json, load->options.out);
}

static struct command_line parse(struct options *o, char **arguments)
{
	struct option_spec table[] = {
		COUNT("threads", &o->threads, 1, MOST_THREADS, "number of threads"),
		REAL_ABOVE("burst-us", &o->burst_us, 0.0, 60e6, "CPU time of a burst, fixed"),
		REAL_ABOVE("rate", &o->rate, 0.0, 1e5, "bursts per second of each thread, Poisson"),
		REAL("seconds", &o->seconds, 0.0, 1e6, "length, 0: until SIGTERM"),
		FLAG("spin", &o->spin, "burn always"),
		COUNT("seed", &o->seed, 0, UINT64_MAX, "same seed, same times of the bursts"),
		REAL("iterations-per-us", &o->iterations_per_us, 0.0, 1e6,
		     "speed of the work loop, 0: calibrate"),
		TEXT("out", &o->out, "file of the result, else standard output"),
	};
	static struct option_spec specs[sizeof(table) / sizeof(table[0])];
	struct command_line line = {
		.subcommand = "threads",
		.summary = "Runs synthetic vCPU threads; the first line of output lists their tids.",
		.options = specs,
		.count = sizeof(table) / sizeof(table[0]),
	};

	for (size_t i = 0; i < line.count; i++)
		specs[i] = table[i];
	*o = (struct options){.threads = 4, .burst_us = 500.0, .rate = 100.0, .seed = 1};
	cli_parse(&line, arguments);
	if (o->spin && cli_given(&line, "rate"))
		fail_option("rate", "has no meaning with --spin");
	return line;
}

int threads_main(char **arguments)
{
	static struct load load;
	struct command_line line = parse(&load.options, arguments);
	FILE *file = output_open(load.options.out);

	load.burner = burn_prepare(load.options.iterations_per_us);
	stop_install_handlers();
	start_threads(&load);
	announce(&load);
	load.start_ns = clock_now_ns();
	latch_open(&load.started);
	stop_wait_until(load.options.seconds > 0.0
				? load.start_ns + (uint64_t)(load.options.seconds * (double)NS_PER_S)
				: UINT64_MAX / 2);
	stop_all();
	crew_join(&load.crew);
	write_result(&load, &line, file);
	return 0;
}
