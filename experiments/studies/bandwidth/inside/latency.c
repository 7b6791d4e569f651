/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that serve requests below a limit.
 *
 *   critical:quota=200000:seconds=15       one vCPU that serves, three that always compute, one limit around all
 *     each_quota, each_period: a limit of each vCPU; cap, cap_period: one around those that compute;
 *     critical_weight: that of the group of those that serve; load: of one CPU, that each wants
 *   bursts:quota=20000:load=0.7:seconds=20  seven threads that are woken together for 1 ms; load: of the quota
 */
#include "kit.h"

#include <math.h>
#include <sys/wait.h>

#define VM "vm"
#define SERVING VM "/serving"
#define COMPUTING VM "/computing"
#define SETTLE_NS 200000000ull

static double request_us, gap_us;
static uint64_t last_ns;
static bool is_joint;

/* Poisson arrivals; a request's latency counts from when it should have begun. */
static void serve(int id)
{
	struct worker *self = &shared->worker[id];
	uint64_t state = 88172645463325252ull + (uint64_t)number("seed", 0) * 104729;
	uint64_t next = shared->begin_ns;

	if (!is_joint)
		state += (uint64_t)id * 7919000003ull;
	for (int i = 0; i < 10; i++)
		chance(&state);
	for (;;) {
		next += (uint64_t)(-log(chance(&state)) * gap_us * 1000);
		if (next > last_ns)
			return;
		if (now_ns() < next)
			sleep_until(next);
		work_us(request_us);
		self->done++;
		if (self->count < MOST_LATENCIES)
			self->latency_ns[self->count++] = now_ns() - next;
	}
}

static void begin_at_once(void)
{
	shared->begin_ns = now_ns() + SETTLE_NS;
	last_ns = shared->begin_ns + (uint64_t)(number("seconds", 15) * 1e9);
}

static const char *own_group(int id)
{
	static char path[64];

	snprintf(path, sizeof(path), VM "/vcpu%d", id);
	return path;
}

static const char *home_of(int id, bool serves)
{
	double quota = number("each_quota", 0);

	if (quota <= 0)
		return serves ? SERVING : COMPUTING;
	make_group(own_group(id));
	limit(own_group(id), quota, number("each_period", 100000), 0);
	return own_group(id);
}

void critical_vcpu(void)
{
	int serving = (int)number("serving", 1), computing = (int)number("computing", 3);
	int vcpus = serving + computing, cpus = (int)number("cpus", 4);
	double seconds = number("seconds", 15);
	pid_t pids[MOST_WORKERS];
	uint64_t done = 0;
	struct use before, used;

	make_group(VM);
	put(in_group(VM, "cgroup.subtree_control"), "+cpu");
	make_group(SERVING);
	make_group(COMPUTING);
	limit(VM, number("quota", 0), number("period", 100000), number("burst", 0));
	if (number("cap", 0) > 0)
		limit(COMPUTING, number("cap", 0), number("cap_period", 10000), 0);
	put(in_group(SERVING, "cpu.weight"), "%d", (int)number("critical_weight", 100));
	request_us = number("request", 2000);
	gap_us = request_us / number("load", 0.3);
	begin_at_once();
	for (int i = 0; i < vcpus; i++)
		pids[i] = start(home_of(i, i < serving), 0, cpus - 1, i < serving ? serve : hog, i);
	shared->go = 1;
	sleep_until(shared->begin_ns);
	before = use_of(VM);
	for (int i = serving; i < vcpus; i++)
		done -= shared->worker[i].done;
	sleep_until(last_ns);
	used = use_since(VM, before);
	for (int i = serving; i < vcpus; i++)
		done += shared->worker[i].done;
	shared->stop = 1;
	for (int i = 0; i < vcpus; i++)
		waitpid(pids[i], NULL, 0);
	say_run();
	say("cpus_used", (double)used.used_us / 1e6 / seconds);
	say("background_cpus", (double)done * 100e-6 / seconds);
	say("throttled_percent", used.periods ? 100.0 * (double)used.throttled / (double)used.periods : 0);
	say_latencies(shared->worker, serving);
	say_end();
	for (int i = 0; i < vcpus; i++)
		remove_group(own_group(i));
	remove_group(SERVING);
	remove_group(COMPUTING);
	remove_group(VM);
}

void joint_bursts(void)
{
	int threads = (int)number("threads", 7), cpus = (int)number("cpus", 7);
	double period = number("period", 100000), quota = number("quota", 0);
	double allowed = number("allowed", quota / period);
	pid_t pids[MOST_WORKERS];
	struct use before, used;

	make_group(VM);
	limit(VM, quota, period, number("burst", 0));
	is_joint = true;
	request_us = number("request", 1000);
	gap_us = request_us * threads / (number("load", 0.7) * allowed);
	begin_at_once();
	for (int i = 0; i < threads; i++)
		pids[i] = start(VM, 0, cpus - 1, serve, i);
	shared->go = 1;
	sleep_until(shared->begin_ns);
	before = use_of(VM);
	for (int i = 0; i < threads; i++)
		waitpid(pids[i], NULL, 0);
	used = use_since(VM, before);
	is_joint = false;
	say_run();
	say("throttled_percent", used.periods ? 100.0 * (double)used.throttled / (double)used.periods : 0);
	say_latencies(shared->worker, threads);
	say_end();
	remove_group(VM);
}
