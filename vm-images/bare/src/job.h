/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_H
#define JOB_H

#include "cpu.h"
#include "request.h"

/* A request on its way through the guest. */
struct job {
	struct request request;  /* memcached has none */
	const struct load *load; /* NULL: what nobody helps with */
	uint16_t slot;           /* where its frame lies (virtio_net.h) */
	uint8_t *payload;        /* in that frame; the answer takes its place */
	uint32_t bytes;          /* of the payload; 0: nothing is answered */
	uint32_t step;           /* pipeline: the next stage */
	uint32_t left;           /* fan-out: helpers that are not done */
} __attribute__((aligned(64)));

/* How a request is served, as experiments/load has it. */
struct load {
	void (*begin)(struct cpu *cpu, struct job *job); /* on vCPU 0, after its serial part */
	void (*help)(struct cpu *cpu, struct job *job);  /* on a helper */
	void (*alone)(struct cpu *cpu, struct job *job); /* on vCPU 0 where nobody helps; NULL: it has nothing to do */
};

extern const struct load single_load, fanout_load, pipeline_load, convoy_load, memcached_load;

/* Helper number i is vCPU 1 + i. */
static inline struct cpu *helper(uint32_t i)
{
	return &cpus[1 + i];
}

/* Back to vCPU 0, which answers. */
static inline void job_finish(struct cpu *cpu, struct job *job)
{
	mailbox_post(cpu, &cpus[0], job);
}

#endif
