/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATE_H
#define GATE_H

#include <stdatomic.h>

enum gate_kind { GATE_FUTEX, GATE_EVENTFD };

extern const char *const gate_kind_names[]; /* in the order of the enum, NULL at the end */

/* A counting semaphore: how one thread of a workload wakes another. */
struct gate {
	unsigned int kind;
	atomic_uint tokens;  /* futex */
	atomic_uint waiters; /* futex */
	int fd;              /* eventfd */
};

void gate_init(struct gate *gate, unsigned int kind);
void gate_post(struct gate *gate); /* adds one token, wakes at most one thread */
void gate_wait(struct gate *gate); /* takes one token, sleeps while there is none */

/* Opened once, for all threads that wait at it. */
struct latch {
	atomic_uint open;
};

void latch_open(struct latch *latch);
void latch_wait(struct latch *latch);

#endif
