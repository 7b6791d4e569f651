/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include "bell.h"
#include "frame.h"
#include "memory.h"
#include "options.h"
#include "virtio_net.h"
#include "work.h"

static const struct load *const loads[KINDS] = {
	[KIND_SINGLE] = &single_load,
	[KIND_FANOUT] = &fanout_load,
	[KIND_PIPELINE] = &pipeline_load,
	[KIND_CONVOY] = &convoy_load,
};

static struct job jobs[QUEUE_SIZE];

static void answer(struct cpu *cpu, struct job *job)
{
	work_us(job->request.tail_us);
	cpu->statistics.jobs++;
	frame_turn_back(virtio_net_frame(job->slot));
	virtio_net_send(virtio_net_frame(job->slot), job->bytes);
	virtio_net_release(job->slot);
}

static void tell_statistics(struct job *job, uint8_t *payload, uint32_t room)
{
	if (room >= sizeof(struct request) + sizeof(struct statistics) && job->request.id < cpu_count) {
		struct statistics statistics = statistics_of(&cpus[job->request.id]);

		memcpy(payload + sizeof(struct request), &statistics, sizeof(statistics));
	}
	frame_turn_back(virtio_net_frame(job->slot));
	virtio_net_send(virtio_net_frame(job->slot), job->bytes);
	virtio_net_release(job->slot);
}

static void serve(struct cpu *cpu, struct job *job)
{
	work_us(job->request.serial_us);
	if (options.helpers && job->request.kind < KINDS)
		loads[job->request.kind]->begin(cpu, job);
	else
		answer(cpu, job);
}

bool service_receive(struct cpu *cpu)
{
	struct job *job;
	uint16_t slot;
	uint32_t bytes, room;
	uint8_t *payload;

	if (!virtio_net_receive(&slot, &bytes))
		return false;
	bell_stop_listening(cpu);
	payload = frame_request(virtio_net_frame(slot), bytes, &room);
	if (!payload) {
		if (frame_answer_arp(virtio_net_frame(slot), bytes))
			virtio_net_send(virtio_net_frame(slot), bytes);
		virtio_net_release(slot);
		return true;
	}
	job = &jobs[slot];
	*job = (struct job){.slot = slot, .bytes = bytes};
	memcpy(&job->request, payload, sizeof(job->request));
	if (job->request.kind == KIND_STATISTICS)
		tell_statistics(job, payload, room);
	else
		serve(cpu, job);
	return true;
}

void service_continue(struct cpu *cpu, struct job *job)
{
	if (cpu == &cpus[0]) {
		answer(cpu, job);
		return;
	}
	cpu->statistics.jobs++; /* before the last part of it answers the client, who then asks for it */
	loads[job->request.kind]->help(cpu, job);
}
