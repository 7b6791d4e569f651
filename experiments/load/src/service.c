/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include "background.h"
#include "clock.h"
#include "distribution.h"
#include "service_options.h"
#include "stop.h"
#include "subcommands.h"

#define MOST_STAGES 4096ULL

void service_work(const struct service *service, size_t request, unsigned int stage, double mean_us)
{
	const struct service_options *o = &service->options;
	struct rng rng;

	/*
	 * A generator for this stage of this request, not one per thread: the work of a run is the
	 * same whichever thread does it in which order, so runs with the same seed can be paired.
	 */
	rng_seed(&rng, o->run.seed, RNG_STAGE_LENGTHS, request * MOST_STAGES + stage);
	burn(&service->burner, distribution_draw(&rng, o->distribution, o->sigma, mean_us));
}

void service_complete(struct service *service, size_t request)
{
	if (stop_interrupted()) /* its work was cut short */
		return;
	samples_end(&service->run.samples, request, clock_now_ns());
	if (service->options.answers)
		feeder_answer(&service->feeder);
}

bool service_wait_until(struct service *service, uint64_t offset_ns)
{
	if (stop_wait_until(service->run.start_ns + offset_ns))
		return true;
	latch_wait(&service->measured);
	return false;
}

static void start_threads(struct service *service)
{
	const struct service_options *o = &service->options;

	/* main, a logger, a holder and two threads for each background: the most there can be. */
	crew_init(&service->crew, 3 + o->helpers + o->stages + 2 * o->background);
	crew_adopt(&service->crew, "main");
	service->variant->start(service);
	background_start(service);
	crew_wait_started(&service->crew);
	if (o->pinned)
		crew_pin_each(&service->crew, o->pin_from);
	clock_precise_timers();
}

/* Sleeps until the request is there; false when the run was interrupted. */
static bool await_arrival(struct service *service, size_t request)
{
	if (service->options.feeder)
		return feeder_await(&service->feeder);
	return stop_wait_until(run_scheduled_ns(&service->run, request));
}

struct window {
	struct cpu_mark begin, end;
	struct background_count bursts_begin, bursts_end;
};

static void open_window(struct service *service, struct window *window)
{
	stop_wait_until(service->run.warmup_end_ns);
	cpu_mark_take(&window->begin, &service->crew);
	window->bursts_begin = background_count(service);
}

static void close_window(struct service *service, struct window *window)
{
	stop_wait_until(service->run.nominal_end_ns);
	service->run.end_ns = clock_now_ns();
	cpu_mark_take(&window->end, &service->crew);
	window->bursts_end = background_count(service);
}

static void serve_all(struct service *service, struct window *window)
{
	struct run *run = &service->run;
	size_t request;

	for (request = 0; request < run->arrivals.count; request++) {
		if (request == run->arrivals.first_measured)
			open_window(service, window);
		if (!await_arrival(service, request))
			break;
		samples_begin(&run->samples, request, clock_now_ns());
		service->variant->serve(service, request);
	}
	service->variant->drain(service, request);
	if (!window->begin.at_ns)
		open_window(service, window); /* no request came after the warm-up */
	close_window(service, window);
}

static void write_result(struct service *service, const struct window *window)
{
	struct json json = run_open_result(&service->run);

	json_real(&json, "iterations_per_us", service->burner.iterations_per_us);
	cpu_write(&service->crew, &window->begin, &window->end, &json);
	background_write(service, &window->bursts_begin, &window->bursts_end,
			 cpu_seconds_of(&service->crew, &window->begin, &window->end, BACKGROUND_NAME) +
			 cpu_seconds_of(&service->crew, &window->begin, &window->end, LOGGER_NAME) +
			 cpu_seconds_of(&service->crew, &window->begin, &window->end, PEER_NAME),
			 &json);
	run_close_result(&service->run, &json);
}

static void end_threads(struct service *service)
{
	stop_all();
	latch_open(&service->measured);
	atomic_store(&service->closing, true);
	service->variant->close(service);
	background_close(service);
	crew_join(&service->crew);
}

int service_main(char **arguments)
{
	static const struct variant *const variants[] = {&fanout_variant, &pipeline_variant,
							 &convoy_variant, &pretend_variant};
	static struct service service;
	struct command_line line = service_parse(&service.options, arguments);
	struct window window;

	run_prepare(&service.run, &service.options.run, &line);
	service.variant = variants[service.options.variant];
	service.burner = burn_prepare(service.options.iterations_per_us);
	stop_install_handlers();
	if (service.options.feeder) /* before there are threads to lose */
		service.feeder = feeder_fork(&service.run, service.options.answers);
	start_threads(&service);
	window = (struct window){.begin = cpu_mark_make(&service.crew),
				 .end = cpu_mark_make(&service.crew)};
	run_announce(&service.run, &service.crew, service.feeder.pid);
	latch_open(&service.started);
	if (service.options.feeder)
		feeder_start(&service.feeder, service.run.start_ns);
	serve_all(&service, &window);
	if (service.options.feeder)
		service.run.late_sends = feeder_end(&service.feeder);
	end_threads(&service);
	write_result(&service, &window);
	return 0;
}
