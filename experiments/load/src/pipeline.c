/* SPDX-License-Identifier: Apache-2.0 */
/* main -> stage-0 -> stage-1 -> ...: main takes the next request at once, one stage is slow. */
#include "service.h"

#include "memory.h"
#include "tally.h"

struct stage_thread {
	struct service *service;
	struct gate go;
	unsigned int index;
};

struct pipeline {
	struct stage_thread *stages;
	struct tally tally;
};

/* The slow stage has stages before and behind it, as a bottleneck usually has. */
static double stage_us(const struct service *service, unsigned int index)
{
	const struct service_options *o = &service->options;

	return index == o->stages / 2 ? o->helper_us * o->imbalance : o->helper_us;
}

static void pass_on(struct service *service, unsigned int from, size_t request)
{
	struct pipeline *pipeline = service->pipeline;

	if (from + 1 < service->options.stages) {
		gate_post(&pipeline->stages[from + 1].go);
		return;
	}
	service_complete(service, request);
	tally_add(&pipeline->tally);
}

static void run_stage(void *argument)
{
	struct stage_thread *stage = argument;
	struct service *service = stage->service;

	/* One thread before and behind each gate: requests keep their order, a token is the next one. */
	for (size_t request = 0;; request++) {
		gate_wait(&stage->go);
		if (atomic_load(&service->closing))
			return;
		service_work(service, request, STAGE_FIRST_HELPER + stage->index,
			     stage_us(service, stage->index));
		pass_on(service, stage->index, request);
	}
}

static void pipeline_start(struct service *service)
{
	const struct service_options *o = &service->options;
	struct pipeline *pipeline = memory_touched(1, sizeof(*pipeline));

	service->pipeline = pipeline;
	tally_init(&pipeline->tally, o->wake);
	pipeline->stages = memory_touched(o->stages, sizeof(*pipeline->stages));
	for (unsigned int i = 0; i < o->stages; i++) {
		struct stage_thread *stage = &pipeline->stages[i];

		stage->service = service;
		stage->index = i;
		gate_init(&stage->go, o->wake);
	}
	for (unsigned int i = 0; i < o->stages; i++)
		crew_start(&service->crew, "stage", (int)i, ANY_CPU, run_stage,
			   &pipeline->stages[i]);
}

static void pipeline_serve(struct service *service, size_t request)
{
	service_work(service, request, STAGE_SERIAL, service->options.serial_us);
	gate_post(&service->pipeline->stages[0].go);
}

static void pipeline_drain(struct service *service, size_t requests)
{
	tally_wait(&service->pipeline->tally, requests);
}

static void pipeline_close(struct service *service)
{
	for (uint64_t i = 0; i < service->options.stages; i++)
		gate_post(&service->pipeline->stages[i].go);
}

const struct variant pipeline_variant = {pipeline_start, pipeline_serve, pipeline_drain,
					 pipeline_close};
