/* SPDX-License-Identifier: Apache-2.0 */
/* How long a woken thread waits for its core while others spin on it. */
#include "burn.h"
#include "clock.h"
#include "crew.h"
#include "fail.h"
#include "memory.h"
#include "output.h"
#include "rng.h"
#include "run.h"
#include "stop.h"
#include "subcommands.h"
#include "summary.h"

#include <sched.h>

struct options {
	uint64_t cpu, hogs, settle_ms, seed;
	struct range sleep_us;
	double seconds, work_us, iterations_per_us;
	const char *out;
};

struct wakeup {
	struct options options;
	struct crew crew;
	struct burner burner;
	struct latch settled;
	uint64_t end_ns;
	uint64_t *latency_ns, *response_ns;
	size_t count, capacity;
};

static void run_hog(void *argument)
{
	struct wakeup *wakeup = argument;

	while (!stop_requested())
		burn(&wakeup->burner, 1000.0);
}

static void run_waker(void *argument)
{
	struct wakeup *wakeup = argument;
	const struct options *o = &wakeup->options;
	struct rng rng;

	rng_seed(&rng, o->seed, RNG_SLEEPS, 0);
	clock_precise_timers();
	latch_wait(&wakeup->settled);
	while (wakeup->count < wakeup->capacity) {
		uint64_t sleep_us = rng_between(&rng, o->sleep_us.low, o->sleep_us.high);
		uint64_t due_ns = clock_now_ns() + sleep_us * NS_PER_US;

		if (due_ns > wakeup->end_ns || !stop_wait_until(due_ns))
			return;
		wakeup->latency_ns[wakeup->count] = clock_now_ns() - due_ns;
		burn(&wakeup->burner, o->work_us);
		if (stop_requested())
			return; /* its work may have been cut short */
		wakeup->response_ns[wakeup->count++] = clock_now_ns() - due_ns;
	}
}

static void start_threads(struct wakeup *wakeup)
{
	const struct options *o = &wakeup->options;

	wakeup->capacity = (size_t)(o->seconds * 1e6 / (double)o->sleep_us.low) + 1;
	wakeup->latency_ns = memory_touched(wakeup->capacity, sizeof(uint64_t));
	wakeup->response_ns = memory_touched(wakeup->capacity, sizeof(uint64_t));
	crew_init(&wakeup->crew, o->hogs + 1);
	crew_start(&wakeup->crew, "waker", -1, (int)o->cpu, run_waker, wakeup);
	for (uint64_t i = 0; i < o->hogs; i++)
		crew_start(&wakeup->crew, "hog", (int)i, (int)o->cpu, run_hog, wakeup);
	crew_wait_started(&wakeup->crew);
}

static void announce(const struct wakeup *wakeup)
{
	struct json json = output_begin_ready(stdout);

	json_count(&json, "waker", (uint64_t)wakeup->crew.members[0].tid);
	json_open_array(&json, "hogs");
	for (size_t i = 1; i < wakeup->crew.count; i++)
		json_count(&json, NULL, (uint64_t)wakeup->crew.members[i].tid);
	json_close_array(&json);
	output_end(&json, NULL);
}

static void measure(struct wakeup *wakeup)
{
	const struct options *o = &wakeup->options;
	uint64_t begin_ns = clock_now_ns() + o->settle_ms * NS_PER_MS;

	stop_wait_until(begin_ns);
	wakeup->end_ns = begin_ns + (uint64_t)(o->seconds * (double)NS_PER_S);
	latch_open(&wakeup->settled);
	stop_wait_until(wakeup->end_ns);
	stop_all();
	crew_join(&wakeup->crew);
}

static void write_result(struct wakeup *wakeup, const struct command_line *line, FILE *file)
{
	struct json json = output_begin(file, line, wakeup->options.seed, stop_interrupted());

	json_real(&json, "iterations_per_us", wakeup->burner.iterations_per_us);
	summary_write(&json, "latency_ns", wakeup->latency_ns, wakeup->count);
	summary_write(&json, "response_ns", wakeup->response_ns, wakeup->count);
	output_end(&json, wakeup->options.out);
}

static void check_cpu(uint64_t cpu)
{
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	if (!CPU_ISSET(cpu, &allowed))
		fail_option("cpu", "must be a CPU this process may use, got '%llu'",
			    (unsigned long long)cpu);
}

static struct command_line parse(struct options *o, char **arguments)
{
	struct option_spec table[] = {
		COUNT("cpu", &o->cpu, 0, CPU_SETSIZE - 1, "where all threads are pinned"),
		COUNT("hogs", &o->hogs, 0, 1024, "threads that spin there"),
		REAL_ABOVE("seconds", &o->seconds, 0.0, 1e5, "length of the measured part"),
		REAL("work-us", &o->work_us, 0.0, 60e6, "CPU time after each wake-up"),
		RANGE("sleep-us", &o->sleep_us, 10, 10000000, "LOW-HIGH, uniform"),
		COUNT("settle-ms", &o->settle_ms, 0, 600000, "between the ready line and the measurement"),
		COUNT("seed", &o->seed, 0, UINT64_MAX, "same seed, same sleeps"),
		REAL("iterations-per-us", &o->iterations_per_us, 0.0, 1e6,
		     "speed of the work loop, 0: calibrate"),
		TEXT("out", &o->out, "file of the result, else standard output"),
	};
	static struct option_spec specs[sizeof(table) / sizeof(table[0])];
	struct command_line line = {
		.subcommand = "wakeup",
		.summary = "Measures the wake-up latency of one thread beside spinning ones on one core.",
		.options = specs,
		.count = sizeof(table) / sizeof(table[0]),
	};

	for (size_t i = 0; i < line.count; i++)
		specs[i] = table[i];
	*o = (struct options){.hogs = 2, .seconds = 5.0, .work_us = 100.0, .sleep_us = {2000, 6000},
			      .settle_ms = 500, .seed = 1};
	cli_parse(&line, arguments);
	check_cpu(o->cpu);
	return line;
}

int wakeup_main(char **arguments)
{
	static struct wakeup wakeup;
	struct command_line line = parse(&wakeup.options, arguments);
	FILE *file = output_open(wakeup.options.out);

	wakeup.burner = burn_prepare(wakeup.options.iterations_per_us);
	stop_install_handlers();
	start_threads(&wakeup);
	announce(&wakeup);
	measure(&wakeup);
	write_result(&wakeup, &line, file);
	return 0;
}
