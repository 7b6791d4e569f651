/* SPDX-License-Identifier: Apache-2.0 */
/* How vCPUs wake each other, and the count of who woke whom. */
#ifndef BELL_H
#define BELL_H

#include "cpu.h"

/* A vCPU says that it listens, looks once more for work, and only then sleeps: what comes in between rings. */
enum bell { BELL_AWAKE, BELL_LISTENS, BELL_RUNG };

void bell_listen(struct cpu *cpu);
void bell_stop_listening(struct cpu *cpu);

/* Halts until an interrupt; returns at once if one came since bell_listen. */
void bell_sleep(struct cpu *cpu);

/* Interrupts that vCPU if it listens. */
void bell_ring(struct cpu *from, struct cpu *to);

#endif
