/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data race that is known and is not ours: /proc/PID/schedstat of a running thread is read
 * without a lock (proc_pid_schedstat() in fs/proc/base.c). A detector that does not report it sleeps.
 */
#include "crew.h"
#include "fail.h"
#include "jobs.h"

#include <fcntl.h>
#include <unistd.h>

enum { HOG_CPU = 1 };

static const int64_t length_ns = 10LL * NS_PER_S;

void job_race(void)
{
	bool stop = false;
	struct member hog = {.run = crew_hog, .shared = &stop, .cpu = HOG_CPU};
	char path[64], text[128];
	long long reads = 0;
	int file;

	pin(0);
	crew_start(&hog);
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", hog.tid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	must(file);
	for (int64_t end_ns = now_ns() + length_ns; now_ns() < end_ns; reads++)
		must(pread(file, text, sizeof(text), 0));
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	crew_join(&hog);
	printf("race reads=%lld\n", reads);
}
