/* SPDX-License-Identifier: Apache-2.0 */
/* Where each vCPU arrives at CPL 3, and its endless loop. */
#include "background.h"
#include "bell.h"
#include "console.h"
#include "lapic.h"
#include "options.h"
#include "service.h"
#include "virtio_net.h"

static bool begun; /* by vCPU 0, when all the others are there */

void cpu_main(void);

static void say_who_is_here(void)
{
	uint32_t online = 0;

	for (uint32_t id = 0; id < cpu_count; id++)
		online += cpus[id].online;
	console_text("bare: ");
	console_number(online);
	console_text(" of ");
	console_number(cpu_count);
	console_text(" vCPUs, ");
	console_number(options.helpers);
	console_text(" helpers\n");
}

static void arrive(struct cpu *cpu)
{
	if (cpu == &cpus[0]) {
		say_who_is_here();
		__atomic_store_n(&begun, true, __ATOMIC_SEQ_CST);
		return;
	}
	lapic_enable();
	__atomic_store_n(&cpu->online, true, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
		relax();
}

/* Work that somebody waits for; false: there is none. Listens while it looks. */
static bool serve_turn(struct cpu *cpu, uint64_t *acknowledged)
{
	struct job *job;

	if (cpu->devices != *acknowledged) {
		*acknowledged = cpu->devices;
		virtio_net_acknowledge();
	}
	job = mailbox_take(cpu);
	if (job) {
		bell_stop_listening(cpu);
		service_continue(cpu, job);
		return true;
	}
	return cpu == &cpus[0] && service_receive(cpu);
}

void cpu_main(void)
{
	struct cpu *cpu = this_cpu();
	uint64_t acknowledged = 0;

	arrive(cpu);
	for (;;) {
		bell_listen(cpu);
		if (!serve_turn(cpu, &acknowledged) && !background_turn(cpu))
			bell_sleep(cpu);
	}
}
