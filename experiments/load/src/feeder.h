/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FEEDER_H
#define FEEDER_H

#include "run.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A process of its own that delivers each request at its time through an eventfd, and may wait for the answers. */
struct feeder {
	pid_t pid;
	int requests_fd; /* eventfd: one token per request */
	int answers_fd;  /* another one for the way back, or -1 */
	int control_fd;  /* the start time to the feeder, the number of late sends back */
};

struct feeder feeder_fork(const struct run *run, bool answers);
void feeder_start(struct feeder *feeder, uint64_t start_ns);

/* Sleeps until the next request; false when the run was interrupted. */
bool feeder_await(struct feeder *feeder);

/* Tells it that a request is done: it wakes up, as a client does. */
void feeder_answer(const struct feeder *feeder);

/* Ends the process and returns how many measured requests it delivered late. */
uint64_t feeder_end(struct feeder *feeder);

#endif
