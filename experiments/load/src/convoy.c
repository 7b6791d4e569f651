/* SPDX-License-Identifier: Apache-2.0 */
/* main -> a pool of workers that share a lock with a holder: a preempted holder stops them all. */
#include "service.h"

#include "clock.h"
#include "distribution.h"
#include "memory.h"
#include "tally.h"

struct convoy {
	struct gate requests;
	atomic_size_t next;
	pthread_mutex_t lock;
	struct tally tally;
};

static void work_locked(struct service *service, double us)
{
	pthread_mutex_lock(&service->convoy->lock);
	burn(&service->burner, us);
	pthread_mutex_unlock(&service->convoy->lock);
}

static void run_worker(void *argument)
{
	struct service *service = argument;
	const struct service_options *o = &service->options;
	struct convoy *convoy = service->convoy;

	for (;;) {
		size_t request;

		gate_wait(&convoy->requests);
		if (atomic_load(&service->closing))
			return;
		request = atomic_fetch_add(&convoy->next, 1);
		service_work(service, request, STAGE_FIRST_HELPER, o->helper_us);
		work_locked(service, o->lock_us);
		service_work(service, request, STAGE_TAIL, o->tail_us);
		service_complete(service, request);
		tally_add(&convoy->tally);
	}
}

static void run_holder(void *argument)
{
	struct service *service = argument;
	const struct service_options *o = &service->options;
	double mean_gap_ns = (double)NS_PER_S / o->hold_rate;
	double at_ns = 0.0;
	struct rng rng;

	rng_seed(&rng, o->run.seed, RNG_HOLDER, 0);
	latch_wait(&service->started);
	for (;;) {
		at_ns += distribution_draw(&rng, SHAPE_EXP, 0.0, mean_gap_ns);
		if (!service_wait_until(service, (uint64_t)at_ns))
			return;
		work_locked(service, o->hold_us);
	}
}

static void convoy_start(struct service *service)
{
	const struct service_options *o = &service->options;
	struct convoy *convoy = memory_touched(1, sizeof(*convoy));

	service->convoy = convoy;
	gate_init(&convoy->requests, o->wake);
	pthread_mutex_init(&convoy->lock, NULL);
	tally_init(&convoy->tally, o->wake);
	for (uint64_t i = 0; i < o->helpers; i++)
		crew_start(&service->crew, "worker", (int)i, ANY_CPU, run_worker, service);
	crew_start(&service->crew, "holder", -1, ANY_CPU, run_holder, service);
}

static void convoy_serve(struct service *service, size_t request)
{
	service_work(service, request, STAGE_SERIAL, service->options.serial_us);
	gate_post(&service->convoy->requests);
}

static void convoy_drain(struct service *service, size_t requests)
{
	tally_wait(&service->convoy->tally, requests);
}

static void convoy_close(struct service *service)
{
	for (uint64_t i = 0; i < service->options.helpers; i++)
		gate_post(&service->convoy->requests);
}

const struct variant convoy_variant = {convoy_start, convoy_serve, convoy_drain, convoy_close};
