/* SPDX-License-Identifier: Apache-2.0 */
/* main -> k helpers -> main: the request waits for the slowest helper, or for main, if it joins them. */
#include "service.h"

#include "memory.h"

struct helper {
	struct service *service;
	struct gate go;
	unsigned int index;
};

struct fanout {
	struct gate joined;
	atomic_uint pending;
	atomic_size_t request;
	struct helper *helpers;
};

static double helper_us(const struct service *service, unsigned int index)
{
	const struct service_options *o = &service->options;

	return index == 0 ? o->helper_us * o->imbalance : o->helper_us;
}

static void run_helper(void *argument)
{
	struct helper *helper = argument;
	struct service *service = helper->service;
	struct fanout *fanout = service->fanout;

	for (;;) {
		gate_wait(&helper->go);
		if (atomic_load(&service->closing))
			return;
		service_work(service, atomic_load(&fanout->request),
			     STAGE_FIRST_HELPER + helper->index, helper_us(service, helper->index));
		if (atomic_fetch_sub(&fanout->pending, 1) == 1)
			gate_post(&fanout->joined);
	}
}

static void fanout_start(struct service *service)
{
	const struct service_options *o = &service->options;
	struct fanout *fanout = memory_touched(1, sizeof(*fanout));

	service->fanout = fanout;
	gate_init(&fanout->joined, o->wake);
	fanout->helpers = memory_touched(o->helpers, sizeof(*fanout->helpers));
	for (unsigned int i = 0; i < o->helpers; i++) {
		struct helper *helper = &fanout->helpers[i];

		helper->service = service;
		helper->index = i;
		gate_init(&helper->go, o->wake);
		crew_start(&service->crew, "helper", (int)i, ANY_CPU, run_helper, helper);
	}
}

static void fan_out_and_join(struct service *service, size_t request)
{
	struct fanout *fanout = service->fanout;
	uint64_t helpers = service->options.helpers;

	atomic_store(&fanout->request, request);
	atomic_store(&fanout->pending, (unsigned int)helpers);
	for (uint64_t i = 0; i < helpers; i++)
		gate_post(&fanout->helpers[i].go);
	if (service->options.joins)
		service_work(service, request, STAGE_FIRST_HELPER + (unsigned int)helpers,
			     service->options.helper_us);
	gate_wait(&fanout->joined);
}

static void fanout_serve(struct service *service, size_t request)
{
	const struct service_options *o = &service->options;

	service_work(service, request, STAGE_SERIAL, o->serial_us);
	if (o->helpers)
		fan_out_and_join(service, request);
	service_work(service, request, STAGE_TAIL, o->tail_us);
	service_complete(service, request);
}

static void fanout_drain(struct service *service, size_t requests)
{
	(void)service; /* main itself completes each request before it takes the next one */
	(void)requests;
}

static void fanout_close(struct service *service)
{
	for (uint64_t i = 0; i < service->options.helpers; i++)
		gate_post(&service->fanout->helpers[i].go);
}

const struct variant fanout_variant = {fanout_start, fanout_serve, fanout_drain, fanout_close};
