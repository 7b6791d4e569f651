/* SPDX-License-Identifier: Apache-2.0 */
#include "sleep_lock.h"

#include "bell.h"
#include "spin.h"

static void wait_until_granted(struct cpu *cpu)
{
	cpu->statistics.lock_waits++;
	for (;;) {
		bell_listen(cpu);
		if (cpu->lock_granted)
			break;
		bell_sleep(cpu);
	}
	bell_stop_listening(cpu);
}

void sleep_lock(struct cpu *cpu, struct sleep_lock *lock)
{
	bool wait;

	spin_lock(&lock->spin);
	wait = lock->taken;
	lock->taken = true;
	cpu->lock_granted = false;
	if (wait)
		lock->waiting |= 1u << cpu->id;
	spin_unlock(&lock->spin);
	if (wait)
		wait_until_granted(cpu);
}

static struct cpu *next_waiter(const struct cpu *cpu, const struct sleep_lock *lock)
{
	for (uint32_t i = 1; i <= cpu_count; i++) {
		uint32_t id = (cpu->id + i) % cpu_count;

		if (lock->waiting & 1u << id)
			return &cpus[id];
	}
	return NULL;
}

void sleep_unlock(struct cpu *cpu, struct sleep_lock *lock)
{
	struct cpu *next;

	spin_lock(&lock->spin);
	next = next_waiter(cpu, lock);
	if (next)
		lock->waiting &= ~(1u << next->id);
	else
		lock->taken = false;
	spin_unlock(&lock->spin);
	if (!next)
		return;
	next->lock_granted = true;
	bell_ring(cpu, next);
}
