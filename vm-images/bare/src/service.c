/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include "bell.h"
#include "frame.h"
#include "memcached.h"
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

static void send_back(struct job *job)
{
	uint8_t *frame = virtio_net_frame(job->slot);

	if (job->bytes)
		virtio_net_send(frame, frame_turn_back(frame, job->bytes));
	virtio_net_release(job->slot);
}

static void answer(struct cpu *cpu, struct job *job)
{
	work_us(job->request.tail_us);
	cpu->statistics.jobs++;
	send_back(job);
}

static void tell_statistics(struct job *job)
{
	if (job->bytes >= sizeof(struct request) + sizeof(struct statistics) && job->request.id < cpu_count) {
		struct statistics statistics = statistics_of(&cpus[job->request.id]);

		memcpy(job->payload + sizeof(struct request), &statistics, sizeof(statistics));
	}
	send_back(job);
}

static void serve(struct cpu *cpu, struct job *job)
{
	work_us(job->request.serial_us);
	if (options.helpers && job->load) {
		job->load->begin(cpu, job);
		return;
	}
	if (job->load && job->load->alone)
		job->load->alone(cpu, job);
	answer(cpu, job);
}

/* What a datagram asks for; false: nothing that is known here. */
static bool read_datagram(struct job *job, const struct datagram *datagram)
{
	job->payload = datagram->payload;
	job->bytes = datagram->bytes;
	if (datagram->port == MEMCACHED_PORT) {
		job->load = &memcached_load;
		return datagram->bytes > MEMCACHED_HEADER;
	}
	if (datagram->bytes < sizeof(job->request))
		return false;
	memcpy(&job->request, datagram->payload, sizeof(job->request));
	if (job->request.kind < KINDS)
		job->load = loads[job->request.kind];
	return job->request.magic == REQUEST_MAGIC;
}

bool service_receive(struct cpu *cpu)
{
	struct datagram datagram;
	struct job *job;
	uint16_t slot;
	uint32_t bytes;

	if (!virtio_net_receive(&slot, &bytes))
		return false;
	bell_stop_listening(cpu);
	job = &jobs[slot];
	*job = (struct job){.slot = slot};
	if (!frame_datagram(virtio_net_frame(slot), bytes, &datagram) || !read_datagram(job, &datagram)) {
		if (frame_answer_arp(virtio_net_frame(slot), bytes))
			virtio_net_send(virtio_net_frame(slot), bytes);
		virtio_net_release(slot);
	} else if (job->request.kind == KIND_STATISTICS)
		tell_statistics(job);
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
	job->load->help(cpu, job);
}
