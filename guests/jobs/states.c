/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread is doing and what it has used, against clocks and counters that the kernel has
 * elsewhere.
 */
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"

#include <unistd.h>

enum { OBSERVER_CPU = 0, CPU = 1 };

static const int64_t queued_ns = 30 * NS_PER_MS;

static void dormant(struct member *self)
{
	gate_wait(self->shared, 0);
}

static void letters(const char *where, const struct member *hog, const struct member *asleep)
{
	printf("states where=%s self=%c hog=%c asleep=%c\n", where, knobs_row(gettid()).state,
	       knobs_row(hog->tid).state, knobs_row(asleep->tid).state);
}

/* Real-time, so that the hog on this CPU is queued for as long as we burn. */
static void queued(const struct member *hog)
{
	struct row before, after;

	real_time(1);
	before = knobs_row(hog->tid);
	burn_ns(queued_ns);
	after = knobs_row(hog->tid);
	printf("queued held_ns=%lld ready_ns=%lld run_ns=%lld\n", (long long)queued_ns,
	       after.ready_ns - before.ready_ns, after.run_ns - before.run_ns);
	real_time(0);
}

/* The row's run time must lie between two looks at the thread's own clock. */
static void exact(void)
{
	int64_t low_ns, high_ns;
	struct row row;

	for (int i = 0; i < 5; i++) {
		low_ns = own_cpu_ns();
		row = knobs_row(gettid());
		high_ns = own_cpu_ns();
		printf("exact low_ns=%lld run_ns=%lld high_ns=%lld\n", (long long)low_ns,
		       row.run_ns, (long long)high_ns);
		burn_ns(700 * NS_PER_US);
	}
}

static long long from_status(pid_t tid, const char *key)
{
	char path[KNOBS_PATH], line[256];
	long long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", tid, tid);
	file = fopen(path, "re");
	if (!file)
		fail(path);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) == 0)
			value = atoll(line + strlen(key));
	}
	fclose(file);
	return value;
}

static void switches(pid_t tid)
{
	struct row row = knobs_row(tid);

	printf("switches voluntary=%lld involuntary=%lld status_voluntary=%lld "
	       "status_involuntary=%lld\n",
	       row.voluntary, row.involuntary, from_status(tid, "voluntary_ctxt_switches:"),
	       from_status(tid, "nonvoluntary_ctxt_switches:"));
}

void job_states(void)
{
	struct gate gate = {0};
	bool stop = false;
	struct member hog = {.run = crew_hog, .shared = &stop, .cpu = CPU};
	struct member asleep = {.run = dormant, .shared = &gate, .cpu = CPU};
	char path[KNOBS_PATH];
	struct row rows[8];

	pin(OBSERVER_CPU);
	crew_start(&asleep);
	crew_start(&hog);
	sleep_ns(20 * NS_PER_MS);
	letters("elsewhere", &hog, &asleep);
	pin(CPU);
	letters("here", &hog, &asleep);
	queued(&hog);
	exact();
	switches(asleep.tid);
	knobs_group_path(path, getpid());
	printf("group rows=%d threads=3\n", knobs_read(path, rows, 8));
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	gate_open(&gate);
	crew_join(&hog);
	switches(getpid());
	crew_join(&asleep);
}
