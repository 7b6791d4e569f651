/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late wake-ups that are planted: a real-time thread wakes a sleeper and keeps the CPU for as long
 * as it likes.
 */
#include "fail.h"
#include "jobs.h"
#include "knobs.h"
#include "sleeper.h"

#include <unistd.h>

enum { CPU = 1, PRIORITY = 10, ROUNDS = 60 };

/* Between the pauses, so that the sleeper's own few microseconds never count as late. */
static const int64_t held_ns = 8 * NS_PER_MS, pause_ns = 12 * NS_PER_MS;

/* The caller holds the CPU after every `every`th of the wake-ups; 0: after none. */
static void measure(struct sleeper *sleeper, struct member *member, const char *granularity,
		    int every)
{
	char line[KNOBS_PATH];
	struct row before, after;
	int planted = 0;

	snprintf(line, sizeof(line), "granularity_ns %s\n", granularity);
	knobs_set(member->tid, line);
	await_sleep(member->tid);
	before = knobs_row(member->tid);
	for (int i = 0; i < ROUNDS; i++) {
		gate_open(&sleeper->gate);
		if (every && i % every == 0) {
			burn_ns(held_ns);
			planted++;
		}
		sleep_ns(pause_ns);
	}
	after = knobs_row(member->tid);
	printf("late granularity=%s held_ns=%lld planted=%d wakeups=%lld late=%lld ready_ns=%lld\n",
	       granularity, (long long)held_ns, planted, after.wakeups - before.wakeups,
	       after.late - before.late, after.ready_ns - before.ready_ns);
}

void job_late(void)
{
	struct sleeper sleeper = {0};
	struct member member = {.run = sleeper_run, .shared = &sleeper, .cpu = CPU};

	pin(CPU);
	crew_start(&member);
	real_time(PRIORITY);
	measure(&sleeper, &member, "1000000", 1);
	measure(&sleeper, &member, "1000000", 3);
	measure(&sleeper, &member, "1000000", 0);
	measure(&sleeper, &member, "default", 1);
	measure(&sleeper, &member, "7000000", 1);
	measure(&sleeper, &member, "100000000", 1);
	sleeper_end(&sleeper, &member);
}
