/* SPDX-License-Identifier: Apache-2.0 */
#include "bell.h"

#include "lapic.h"

void bell_listen(struct cpu *cpu)
{
	cpu->pending = 0;
	__atomic_store_n(&cpu->bell, BELL_LISTENS, __ATOMIC_SEQ_CST);
}

void bell_stop_listening(struct cpu *cpu)
{
	__atomic_store_n(&cpu->bell, BELL_AWAKE, __ATOMIC_SEQ_CST);
}

static void halt(void)
{
	asm volatile("int %0" : : "i"(VECTOR_HALT) : "memory");
}

void bell_sleep(struct cpu *cpu)
{
	struct statistics *statistics = &cpu->statistics;
	uint64_t halts = cpu->halts, devices = cpu->devices, timers = cpu->timers;
	uint32_t bell;

	halt();
	if (cpu->halts == halts) /* nobody woke it: it never slept */
		return;
	bell = __atomic_load_n(&cpu->bell, __ATOMIC_SEQ_CST);
	if (bell >= BELL_RUNG)
		statistics->woken_by[bell - BELL_RUNG]++;
	else if (cpu->devices != devices)
		statistics->woken_by_device++;
	else if (cpu->timers != timers)
		statistics->woken_by_timer++;
	else
		statistics->woken_late++;
}

/* One word says both that it was rung and by whom, so no two senders ring for the same sleep. */
void bell_ring(struct cpu *from, struct cpu *to)
{
	uint32_t listens = BELL_LISTENS;

	if (!__atomic_compare_exchange_n(&to->bell, &listens, BELL_RUNG + from->id, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	from->statistics.rang[to->id]++;
	lapic_command(to->id, COMMAND_FIXED | VECTOR_BELL);
}
