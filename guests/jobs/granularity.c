/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One waker against three hogs on one CPU: how long it waits after each wake-up, by its
 * granularity.
 */
#include "chance.h"
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"

#include <sys/prctl.h>
#include <unistd.h>

enum { CPU = 1, HOGS = 3, WAKEUPS = 80, SEED = 20260103, RESUMED_NS = NS_PER_MS };

/* Far above what a wake-up that preempts takes (7 us), far below the next tick (4 ms). */
enum { STOPPED_NS = 200 * NS_PER_US };

/*
 * The longer the pause, the further the waker falls behind the hogs, up to half the scheduling
 * latency (9 ms at 4 CPUs): among three hogs it falls behind by a third of the pause, so that each
 * millisecond of granularity counts.
 */
enum { SHORTEST_US = 200, LONGEST_US = 8000 };

static int ascending(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/*
 * Competes until it has waited for a turn and got it. It is then the one furthest behind, by
 * little: each wake-up starts from the same place, whatever the one before it gained or lost.
 */
static void compete(void)
{
	int64_t before_ns, after_ns = now_ns();

	do {
		before_ns = after_ns;
		after_ns = now_ns();
	} while (after_ns - before_ns < RESUMED_NS);
}

static void measure(const char *granularity)
{
	static int64_t waits_ns[WAKEUPS];
	char line[KNOBS_PATH];
	int64_t sum_ns = 0;
	int stopped = 0;
	struct chance chance = {SEED}; /* the same pauses for every granularity */
	struct row before, after;

	snprintf(line, sizeof(line), "granularity_ns %s\n", granularity);
	knobs_set(gettid(), line);
	before = knobs_row(gettid());
	for (int i = 0; i < WAKEUPS; i++) {
		int64_t pause_us = SHORTEST_US + chance_below(&chance, LONGEST_US - SHORTEST_US),
			moment_ns;

		compete();
		moment_ns = now_ns() + pause_us * NS_PER_US;
		sleep_until_ns(moment_ns);
		waits_ns[i] = now_ns() - moment_ns;
		sum_ns += waits_ns[i];
		stopped += waits_ns[i] > STOPPED_NS;
	}
	after = knobs_row(gettid());
	qsort(waits_ns, WAKEUPS, sizeof(waits_ns[0]), ascending);
	printf("granularity value=%s mean_ns=%lld median_ns=%lld most_ns=%lld wakeups=%lld "
	       "stopped=%d late=%lld\n",
	       granularity, (long long)sum_ns / WAKEUPS, (long long)waits_ns[WAKEUPS / 2],
	       (long long)waits_ns[WAKEUPS - 1], after.wakeups - before.wakeups, stopped,
	       after.late - before.late);
}

void job_granularity(void)
{
	static const char *const values[] = {"0",	"100000",   "2000000",	  "4000000",
					     "8000000", "12000000", "1000000000", "default"};
	struct member hogs[HOGS];
	bool stop = false;

	must(prctl(PR_SET_TIMERSLACK, 1));
	pin(CPU);
	for (int i = 0; i < HOGS; i++) {
		hogs[i] = (struct member){.run = crew_hog, .shared = &stop, .cpu = CPU};
		crew_start(&hogs[i]);
	}
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		measure(values[i]);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < HOGS; i++)
		crew_join(&hogs[i]);
}
