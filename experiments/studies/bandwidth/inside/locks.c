/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that lock, yield and unlock, below a quota that they never reach: what the pool's lock costs (thesis,
 * Figures 5.1 and 5.2).
 *
 *   locks:threads=7:events=8000:quota=10000000:slice=1
 *
 * quota=0: none; other=1: but another group has one, so that the kernel's code for limits is in use.
 */
#include "kit.h"

#include <pthread.h>
#include <sys/wait.h>

#define LOCKS 10
#define YIELDS 100
#define LIMITED "limited"
#define OTHER "other"

static pthread_mutex_t locks[LOCKS];

static void *locker(void *unused)
{
	long event;

	while (!shared->go)
		usleep(1000);
	while ((event = atomic_fetch_sub(&shared->left, 1)) > 0) {
		for (int i = 0; i < YIELDS; i++) {
			pthread_mutex_lock(&locks[event % LOCKS]);
			sched_yield();
			pthread_mutex_unlock(&locks[event % LOCKS]);
		}
	}
	return unused;
}

static void all_lockers(int cpus)
{
	pthread_t threads[MOST_WORKERS];
	int count = (int)number("threads", cpus);

	for (int i = 0; i < LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, locker, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

void lock_events(void)
{
	int cpus = (int)number("cpus", 7);
	double period = number("period", 100000);
	uint64_t begin;
	pid_t pid;

	make_group(LIMITED);
	make_group(OTHER);
	limit(LIMITED, number("quota", 0), period, 0);
	if (number("other", 0) > 0)
		limit(OTHER, US_PER_S, period, 0);
	shared->left = (long)number("events", 8000);
	pid = fork();
	if (!pid) {
		put(in_group(LIMITED, "cgroup.procs"), "%d", getpid());
		keep_to(0, cpus - 1);
		all_lockers(cpus);
		_exit(0);
	}
	usleep(100000);
	begin = now_ns();
	shared->go = 1;
	waitpid(pid, NULL, 0);
	say_run();
	say("runtime_ms", (double)(now_ns() - begin) / 1e6);
	say("throttled", (double)use_of(LIMITED).throttled);
	say_end();
	remove_group(LIMITED);
	remove_group(OTHER);
}
