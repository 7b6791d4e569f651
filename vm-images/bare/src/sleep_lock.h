/* SPDX-License-Identifier: Apache-2.0 */
/* A lock whose waiters sleep; whoever gives it up wakes the next one, in turn. */
#ifndef SLEEP_LOCK_H
#define SLEEP_LOCK_H

#include "cpu.h"

struct sleep_lock {
	uint32_t spin;
	bool taken;
	uint32_t waiting; /* a bit for each vCPU */
};

void sleep_lock(struct cpu *cpu, struct sleep_lock *lock);
void sleep_unlock(struct cpu *cpu, struct sleep_lock *lock);

#endif
