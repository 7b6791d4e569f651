/* SPDX-License-Identifier: Apache-2.0 */
/* Work in the same workload that no request waits for. */
#include "background.h"

#include "clock.h"
#include "distribution.h"
#include "memory.h"
#include "service.h"
#include "service_options.h"
#include "stop.h"

/* The logger is woken after each such piece of a burst. */
#define LOG_EVERY_US 1000.0

struct burster {
	struct service *service;
	unsigned int index;
	struct gate peer_go;
};

struct background {
	struct burster *bursters;
	struct gate logger_go;
	atomic_ulong bursts, logger_wakes, peer_bursts;
};

static void burn_and_log(struct service *service, double us)
{
	for (; us > 0.0 && !stop_requested(); us -= LOG_EVERY_US) {
		burn(&service->burner, us < LOG_EVERY_US ? us : LOG_EVERY_US);
		gate_post(&service->background->logger_go);
	}
}

static void do_burst(struct burster *burster)
{
	struct service *service = burster->service;
	const struct service_options *o = &service->options;

	if (o->background_wakes == WAKES_LOGGER)
		burn_and_log(service, o->background_burst_us);
	else
		burn(&service->burner, o->background_burst_us);
	if (o->background_wakes == WAKES_PEER)
		gate_post(&burster->peer_go);
	atomic_fetch_add(&service->background->bursts, 1);
}

static void run_burster(void *argument)
{
	struct burster *burster = argument;
	struct service *service = burster->service;
	double mean_gap_ns = (double)NS_PER_S / service->options.background_rate;
	double at_ns = service->options.background_from * (double)NS_PER_S;
	struct rng rng;

	rng_seed(&rng, service->options.run.seed, RNG_BACKGROUND, burster->index);
	latch_wait(&service->started);
	for (;;) {
		/* Open loop as the requests: a burst that could not run in time is still to be done. */
		at_ns += distribution_draw(&rng, SHAPE_EXP, 0.0, mean_gap_ns);
		if (!service_wait_until(service, (uint64_t)at_ns))
			return;
		do_burst(burster);
	}
}

static void run_logger(void *argument)
{
	struct service *service = argument;
	struct background *background = service->background;

	for (;;) {
		gate_wait(&background->logger_go);
		if (atomic_load(&service->closing))
			return;
		burn(&service->burner, service->options.logger_us);
		atomic_fetch_add(&background->logger_wakes, 1);
	}
}

static void run_peer(void *argument)
{
	struct burster *burster = argument;
	struct service *service = burster->service;

	for (;;) {
		gate_wait(&burster->peer_go);
		if (atomic_load(&service->closing))
			return;
		burn(&service->burner, service->options.peer_us);
		atomic_fetch_add(&service->background->peer_bursts, 1);
	}
}

static void start_burster(struct service *service, unsigned int index)
{
	const struct service_options *o = &service->options;
	struct burster *burster = &service->background->bursters[index];

	burster->service = service;
	burster->index = index;
	gate_init(&burster->peer_go, o->wake);
	crew_start(&service->crew, BACKGROUND_NAME, (int)index, ANY_CPU, run_burster, burster);
	if (o->background_wakes == WAKES_PEER)
		crew_start(&service->crew, PEER_NAME, (int)index, ANY_CPU, run_peer, burster);
}

void background_start(struct service *service)
{
	const struct service_options *o = &service->options;
	struct background *background = memory_touched(1, sizeof(*background));

	service->background = background;
	background->bursters = memory_touched(o->background, sizeof(*background->bursters));
	gate_init(&background->logger_go, o->wake);
	for (unsigned int i = 0; i < o->background; i++)
		start_burster(service, i);
	if (o->background_wakes == WAKES_LOGGER)
		crew_start(&service->crew, LOGGER_NAME, -1, ANY_CPU, run_logger, service);
}

struct background_count background_count(const struct service *service)
{
	const struct background *background = service->background;

	return (struct background_count){
		.bursts = atomic_load(&background->bursts),
		.logger_wakes = atomic_load(&background->logger_wakes),
		.peer_bursts = atomic_load(&background->peer_bursts),
	};
}

void background_close(struct service *service)
{
	const struct service_options *o = &service->options;

	if (o->background_wakes == WAKES_LOGGER)
		gate_post(&service->background->logger_go);
	for (uint64_t i = 0; i < o->background; i++)
		if (o->background_wakes == WAKES_PEER)
			gate_post(&service->background->bursters[i].peer_go);
}

void background_write(const struct service *service, const struct background_count *from,
		      const struct background_count *to, double cpu_s, struct json *json)
{
	json_open_object(json, "background");
	json_count(json, "threads", service->options.background);
	json_count(json, "bursts", to->bursts - from->bursts);
	json_count(json, "logger_wakes", to->logger_wakes - from->logger_wakes);
	json_count(json, "peer_bursts", to->peer_bursts - from->peer_bursts);
	json_real(json, "cpu_s", cpu_s);
	json_close_object(json);
}
