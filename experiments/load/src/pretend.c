/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads in pairs that hand a turn back and forth, so that they look as if others waited for them. Between two
 * wake-ups the one that has the turn computes: --helper-us. With --alternate-s they take turns without
 * computing for so long, and compute, all of them and without a pause, for as long again.
 */
#include "service.h"

#include "clock.h"
#include "memory.h"
#include "stop.h"

/* While they only pretend, a turn lasts so long. */
#define IDLE_TURN_NS (2 * NS_PER_MS)
#define COMPUTE_US 1000.0

struct actor {
	struct service *service;
	struct actor *partner;
	struct gate turn;
	atomic_bool *together; /* of the pair: both compute */
	bool keeps_turn;
};

struct pretend {
	struct actor *actors;
	atomic_bool *together;
};

static bool computes_all_along(const struct service *service)
{
	double period_s = service->options.alternate_s;
	double since_s = (double)(clock_now_ns() - service->run.start_ns) / (double)NS_PER_S;

	return period_s > 0.0 && (uint64_t)(since_s / period_s) % 2 == 1;
}

/* True for the one of the two that has the turn afterwards. */
static bool compute_together(struct actor *actor)
{
	struct service *service = actor->service;

	if (!atomic_exchange(actor->together, true))
		gate_post(&actor->partner->turn);
	while (computes_all_along(service) && !stop_requested())
		burn(&service->burner, COMPUTE_US);
	if (actor->keeps_turn)
		atomic_store(actor->together, false);
	return actor->keeps_turn;
}

static void take_turn(struct actor *actor)
{
	struct service *service = actor->service;

	if (service->options.alternate_s > 0.0)
		stop_wait_until(clock_now_ns() + IDLE_TURN_NS);
	else
		burn(&service->burner, service->options.helper_us);
	gate_post(&actor->partner->turn);
}

static void run_actor(void *argument)
{
	struct actor *actor = argument;
	struct service *service = actor->service;

	latch_wait(&service->started);
	if (actor->keeps_turn)
		gate_post(&actor->turn);
	for (;;) {
		gate_wait(&actor->turn);
		if (atomic_load(&service->closing))
			return;
		if (!computes_all_along(service) || compute_together(actor))
			take_turn(actor);
	}
}

static void pretend_start(struct service *service)
{
	const struct service_options *o = &service->options;
	struct pretend *pretend = memory_touched(1, sizeof(*pretend));

	service->pretend = pretend;
	pretend->actors = memory_touched(o->helpers, sizeof(*pretend->actors));
	pretend->together = memory_touched(o->helpers / 2, sizeof(*pretend->together));
	for (uint64_t i = 0; i < o->helpers; i++) {
		struct actor *actor = &pretend->actors[i];

		actor->service = service;
		actor->partner = &pretend->actors[i ^ 1];
		actor->together = &pretend->together[i / 2];
		actor->keeps_turn = i % 2 == 0;
		gate_init(&actor->turn, o->wake);
	}
	for (uint64_t i = 0; i < o->helpers; i++)
		crew_start(&service->crew, "actor", (int)i, ANY_CPU, run_actor, &pretend->actors[i]);
}

static void pretend_serve(struct service *service, size_t request)
{
	service_complete(service, request); /* it serves nobody */
}

static void pretend_drain(struct service *service, size_t requests)
{
	(void)service;
	(void)requests;
}

static void pretend_close(struct service *service)
{
	for (uint64_t i = 0; i < service->options.helpers; i++)
		gate_post(&service->pretend->actors[i].turn);
}

const struct variant pretend_variant = {pretend_start, pretend_serve, pretend_drain, pretend_close};
