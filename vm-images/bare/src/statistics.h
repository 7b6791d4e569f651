/* SPDX-License-Identifier: Apache-2.0 */
/* The truth about one vCPU, as it is sent: all counted since the start. guests/bare/client.py reads it. */
#ifndef STATISTICS_H
#define STATISTICS_H

#include <stdint.h>

#define MOST_CPUS 16

struct statistics {
	uint64_t cpus;       /* of this guest */
	uint64_t halts;      /* HLT executed */
	uint64_t bells, devices, timers; /* interrupts taken */
	uint64_t jobs;       /* parts of requests begun here */
	uint64_t quanta;     /* of background work */
	uint64_t holds;      /* of the lock, by the holder */
	uint64_t lock_waits; /* times that the lock was another's */
	uint64_t woken_by_device, woken_by_timer;
	uint64_t woken_late; /* by a bell whose message had been taken already */
	uint64_t posted[MOST_CPUS];   /* messages to that vCPU */
	uint64_t rang[MOST_CPUS];     /* of them, and of locks given up: with an interrupt, since it listened */
	uint64_t woken_by[MOST_CPUS]; /* halts that an interrupt of that vCPU ended */
};

struct cpu;

/* A copy with those counters that the traps keep. */
struct statistics statistics_of(const struct cpu *cpu);

#endif
