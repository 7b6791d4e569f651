/* SPDX-License-Identifier: Apache-2.0 */
#include "sleeper.h"

void sleeper_run(struct member *self)
{
	struct sleeper *sleeper = self->shared;
	uint32_t seen = 0;

	while (!__atomic_load_n(&sleeper->stop, __ATOMIC_ACQUIRE)) {
		gate_wait(&sleeper->gate, seen);
		seen = __atomic_load_n(&sleeper->gate.opened, __ATOMIC_ACQUIRE);
	}
}

void sleeper_end(struct sleeper *sleeper, struct member *member)
{
	__atomic_store_n(&sleeper->stop, true, __ATOMIC_RELEASE);
	gate_open(&sleeper->gate);
	crew_join(member);
}

void sleeper_wake(struct sleeper *sleeper, pid_t tid, int count)
{
	for (int i = 0; i < count; i++) {
		await_sleep(tid);
		gate_open(&sleeper->gate);
	}
	await_sleep(tid);
}
