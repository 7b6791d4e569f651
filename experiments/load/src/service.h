/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVICE_H
#define SERVICE_H

#include "burn.h"
#include "cpu.h"
#include "crew.h"
#include "feeder.h"
#include "run.h"

#include <stdatomic.h>

struct service_options {
	struct run_options run;
	unsigned int variant, wake, distribution, background_wakes;
	double serial_us, helper_us, tail_us, sigma, imbalance;
	uint64_t helpers, stages;
	double hold_us, hold_rate, lock_us, alternate_s;
	uint64_t background;
	double background_burst_us, background_rate, background_from, logger_us, peer_us;
	double iterations_per_us;
	uint64_t pin_from;
	bool feeder, answers, pinned, joins;
};

/* One workload: the calling thread receives the requests, a variant serves them. */
struct service {
	struct service_options options;
	struct run run;
	struct crew crew;
	struct burner burner;
	struct latch started;  /* opens when the start time is known */
	struct latch measured; /* opens when the CPU clocks were read: only then may threads end */
	atomic_bool closing;   /* threads that wait at a gate leave */
	struct feeder feeder;
	const struct variant *variant;
	struct fanout *fanout;
	struct pipeline *pipeline;
	struct convoy *convoy;
	struct pretend *pretend;
	struct background *background;
};

/* How a request is served. */
struct variant {
	void (*start)(struct service *service); /* creates its threads */
	void (*serve)(struct service *service, size_t request);
	void (*drain)(struct service *service, size_t requests); /* returns when all are served */
	void (*close)(struct service *service);                  /* lets its threads end */
};

extern const struct variant fanout_variant, pipeline_variant, convoy_variant, pretend_variant;

/* The stages of a request whose lengths are drawn; further ones are its helpers. */
enum stage { STAGE_SERIAL, STAGE_TAIL, STAGE_FIRST_HELPER };

/* Works through one stage; its length depends on seed, request and stage only. */
void service_work(const struct service *service, size_t request, unsigned int stage, double mean_us);

void service_complete(struct service *service, size_t request);

/* For threads with a schedule of their own: false when the run is over and they have to end. */
bool service_wait_until(struct service *service, uint64_t offset_ns);

#endif
