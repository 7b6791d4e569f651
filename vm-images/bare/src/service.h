/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVICE_H
#define SERVICE_H

#include "job.h"

/* On vCPU 0: takes the next request from the network, if there is one, and does its serial part. */
bool service_receive(struct cpu *cpu);

/* A job from the mailbox: on vCPU 0 the tail and the answer, elsewhere the helper's part. */
void service_continue(struct cpu *cpu, struct job *job);

#endif
