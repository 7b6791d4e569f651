/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that compute so long (thesis, Table 4.1 and Figures 4.1 to 4.5), and the leak by writes of the limit.
 *
 *   work:threads=3:cpus=3:quota=30000:period=10000:writes=1:seconds=8.1
 *
 * writes: how often a second the limit is written; other: every second one has so many us more or less; burst;
 * busy: so many others that always compute beside them, against which the group has this weight.
 */
#include "kit.h"

#include <sys/wait.h>

#define EVENT_US 500
#define BUSY "busy"
#define LIMITED "limited"

static void events(int id)
{
	while (atomic_fetch_sub(&shared->left, 1) > 0) {
		work_us(EVENT_US);
		shared->worker[id].done++;
	}
}

static int ended(int wanted, const pid_t *pids)
{
	int count = 0;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		for (int i = 0; i < wanted; i++)
			count += pids[i] == pid;
	}
	return count;
}

void fixed_work(void)
{
	int threads = (int)number("threads", 3), cpus = (int)number("cpus", threads), busy = (int)number("busy", 0);
	double period = number("period", 100000), quota = number("quota", 0), writes = number("writes", 0);
	int alive = threads, written = 0;
	pid_t workers[MOST_WORKERS], others[MOST_WORKERS];
	uint64_t begin, next;
	struct use before, used;

	make_group(LIMITED);
	make_group(BUSY);
	limit(LIMITED, quota, period, number("burst", 0));
	put(in_group(LIMITED, "cpu.weight"), "%d", (int)number("weight", 100));
	shared->left = (long)(number("seconds", 8) * threads * US_PER_S / EVENT_US);
	for (int i = 0; i < threads; i++)
		workers[i] = start(LIMITED, 0, cpus - 1, events, i);
	for (int i = 0; i < busy; i++)
		others[i] = start(BUSY, 0, cpus - 1, hog, threads + i);
	usleep(50000);
	before = use_of(LIMITED);
	begin = now_ns();
	shared->go = 1;
	next = begin + (writes > 0 ? (uint64_t)(1e9 / writes) : 0);
	while (alive) {
		alive -= ended(threads, workers);
		if (alive && writes > 0 && now_ns() > next) {
			put(in_group(LIMITED, "cpu.max"), "%.0f %.0f",
			    quota + (written++ & 1 ? number("other", 0) : 0), period);
			next += (uint64_t)(1e9 / writes);
		}
		usleep(1000);
	}
	used = use_since(LIMITED, before);
	say_run();
	say("runtime_ms", (double)(now_ns() - begin) / 1e6);
	say("periods", (double)used.periods);
	say("throttled_percent", used.periods ? 100.0 * (double)used.throttled / (double)used.periods : 0);
	say("throttled_ms", (double)used.throttled_us / 1e3);
	say("cpus_used", (double)used.used_us * 1e3 / (double)(now_ns() - begin));
	say("writes", written);
	say_end();
	shared->stop = 1;
	for (int i = 0; i < busy; i++)
		waitpid(others[i], NULL, 0);
	remove_group(LIMITED);
	remove_group(BUSY);
}
