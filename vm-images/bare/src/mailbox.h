/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <stdint.h>

/* As many as there are requests in the guest at once (QUEUE_SIZE), so it never overflows. */
#define MAILBOX_SIZE 256

struct job;
struct cpu;

struct mailbox {
	struct job *jobs[MAILBOX_SIZE];
	uint32_t head, tail, lock;
};

/* Hands a job to a vCPU, and wakes it if it listens. */
void mailbox_post(struct cpu *from, struct cpu *to, struct job *job);

/* The next job of this vCPU, or NULL. */
struct job *mailbox_take(struct cpu *cpu);

#endif
