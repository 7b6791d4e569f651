/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that sleeps until its gate is opened, and then sleeps again: every wake-up of it is
 * planted.
 */
#ifndef SLEEPER_H
#define SLEEPER_H

#include "crew.h"

struct sleeper {
	struct gate gate;
	bool stop;
};

/* The run function of a member whose `shared` is a struct sleeper. */
void sleeper_run(struct member *self);

void sleeper_end(struct sleeper *sleeper, struct member *member);

/* Opens the gate `count` times, each time after the thread fell asleep again. */
void sleeper_wake(struct sleeper *sleeper, pid_t tid, int count);

#endif
