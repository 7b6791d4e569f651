/* SPDX-License-Identifier: Apache-2.0 */
/* Two hogs on one CPU: what part of it the first one gets, by their weights. */
#include "crew.h"
#include "fail.h"
#include "jobs.h"
#include "knobs.h"

#include <unistd.h>

enum { OBSERVER_CPU = 0, CPU = 1, HOGS = 2 };

static const int64_t length_ns = 2LL * NS_PER_S;

static void measure(struct member *hogs, const char *first, const char *second)
{
	const char *weights[HOGS] = {first, second};
	char path[KNOBS_PATH], text[KNOBS_PATH * HOGS];
	long long run_ns[HOGS], begin_ns, span_ns;
	int length = 0;

	for (int i = 0; i < HOGS; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, "%d weight %s\n",
				   hogs[i].tid, weights[i]);
	knobs_group_path(path, getpid());
	errno = knobs_write(path, text, (size_t)length);
	if (errno)
		fail(text);
	begin_ns = now_ns();
	for (int i = 0; i < HOGS; i++)
		run_ns[i] = knobs_row(hogs[i].tid).run_ns;
	sleep_ns(length_ns);
	for (int i = 0; i < HOGS; i++)
		run_ns[i] = knobs_row(hogs[i].tid).run_ns - run_ns[i];
	span_ns = now_ns() - begin_ns;
	printf("shares first=%s second=%s first_run_ns=%lld second_run_ns=%lld span_ns=%lld\n",
	       first, second, run_ns[0], run_ns[1], span_ns);
}

void job_shares(void)
{
	struct member hogs[HOGS];
	bool stop = false;

	pin(OBSERVER_CPU);
	for (int i = 0; i < HOGS; i++) {
		hogs[i] = (struct member){.run = crew_hog, .shared = &stop, .cpu = CPU};
		crew_start(&hogs[i]);
	}
	measure(hogs, "default", "default");
	measure(hogs, "1024", "1126");
	measure(hogs, "2048", "1024");
	measure(hogs, "default", "4096");
	measure(hogs, "512", "15");
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < HOGS; i++)
		crew_join(&hogs[i]);
}
