/* SPDX-License-Identifier: Apache-2.0
 *
 * probe CPUS [balance]: what a guest's first CPUS CPUs are like, as lines of JSON; or `balance` alone, which a
 * real machine can also be asked. Runs itself on the CPU behind them, if there is one.
 *
 *   speed    equal work on the first, the last, half and all of them: how long each took
 *   wake     how long a woken thread takes to run on another CPU, the others idle or busy
 *   gap      how long a busy CPU does nothing of what it is busy with
 *   balance  what two threads for each CPU, free to move, do in each of four half seconds
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000L
#define NOPS 200		      /* an iteration; free of cost for whoever emulates it */
#define SPEED_ITERATIONS 50000	      /* 20 ms at 500 MIPS */
#define WAKES 100
#define WAKE_EVERY_NS (NS_PER_MS + 137000) /* not in step with the ticks */
#define GAP_NS (100 * NS_PER_MS)
#define LEAST_GAP_NS 2000	      /* a longer time between two looks at the clock is a gap */
#define GAPS 100000
#define BALANCE_NS (500 * NS_PER_MS)
#define BALANCES 4
#define START_IN_NS (10 * NS_PER_MS)  /* until all threads are there */

static int cpus;

static void check(int bad, const char *what)
{
	if (bad) {
		perror(what);
		exit(1);
	}
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	struct timespec until = { ns / 1000000000L, ns % 1000000000L };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void work(void)
{
	__asm__ volatile(".rept 200\n nop\n .endr" ::: "memory");
}
_Static_assert(NOPS == 200, "as written");

static void keep_to(int first, int count)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = first; cpu < first + count; cpu++)
		CPU_SET(cpu, &set);
	check(sched_setaffinity(0, sizeof(set), &set) != 0, "sched_setaffinity");
}

struct worker {
	pthread_t thread;
	int cpu; /* -1: any */
	int64_t begin_ns;
	_Atomic int64_t result;
	int32_t *gaps_ns;
};

static struct worker *start(int count, void *(*body)(void *))
{
	struct worker *all = calloc((size_t)count, sizeof(*all));
	int64_t begin_ns = now_ns() + START_IN_NS;

	check(all == NULL, "calloc");
	for (int number = 0; number < count; number++) {
		all[number].cpu = number;
		all[number].begin_ns = begin_ns;
	}
	for (int number = 0; body != NULL && number < count; number++)
		check(pthread_create(&all[number].thread, NULL, body, &all[number]) != 0, "thread");
	return all;
}

static void join(struct worker *all, int count)
{
	for (int number = 0; number < count; number++)
		pthread_join(all[number].thread, NULL);
}

static void tell(const char *kind, const char *what, const struct worker *all, int count)
{
	printf("RUN:{\"kind\": \"%s\", \"what\": \"%s\", \"values\": [", kind, what);
	for (int number = 0; number < count; number++)
		printf("%s%ld", number ? ", " : "", (long)all[number].result);
	printf("]}\n");
	fflush(stdout);
}

static void *equal_work(void *told)
{
	struct worker *self = told;
	int64_t began_ns;

	keep_to(self->cpu, 1);
	sleep_until(self->begin_ns);
	began_ns = now_ns();
	for (int iteration = 0; iteration < SPEED_ITERATIONS; iteration++)
		work();
	self->result = now_ns() - began_ns;
	return NULL;
}

static void speed(const char *what, int first, int count, int step)
{
	struct worker *all = start(count, NULL);

	for (int number = 0; number < count; number++) {
		all[number].cpu = first + number * step;
		check(pthread_create(&all[number].thread, NULL, equal_work, &all[number]) != 0, "thread");
	}
	join(all, count);
	tell("speed", what, all, count);
	free(all);
}

static atomic_int word;	  /* a futex: how often the sleeper was woken */
static atomic_int stop;
static _Atomic int64_t sent_ns;

static long futex(int operation, int value)
{
	return syscall(SYS_futex, &word, operation, value, NULL, NULL, 0);
}

static void *sleeper(void *told)
{
	struct worker *self = told; /* the first of WAKES results */
	int cpu = self->cpu;

	keep_to(cpu, 1);
	for (int count = 0; count < WAKES; count++) {
		while (atomic_load(&word) == count)
			futex(FUTEX_WAIT_PRIVATE, count);
		self[count].result = now_ns() - atomic_load(&sent_ns);
	}
	return NULL;
}

static void *hog(void *told)
{
	struct worker *self = told;

	keep_to(self->cpu, 1);
	while (!atomic_load(&stop))
		work();
	return NULL;
}

static void wake(const char *state, int from, int to, int busy)
{
	struct worker *results = start(WAKES, NULL);
	struct worker *hogs = start(cpus, NULL);
	int64_t next_ns;
	char what[64];

	atomic_store(&word, 0);
	atomic_store(&stop, 0);
	for (int cpu = 0; busy && cpu < cpus; cpu++)
		if ((hogs[cpu].cpu != from && hogs[cpu].cpu != to))
			check(pthread_create(&hogs[cpu].thread, NULL, hog, &hogs[cpu]) != 0, "thread");
	keep_to(from, 1);
	results->cpu = to;
	check(pthread_create(&results->thread, NULL, sleeper, results) != 0, "thread");
	next_ns = now_ns() + START_IN_NS;
	for (int count = 1; count <= WAKES; count++, next_ns += WAKE_EVERY_NS) {
		sleep_until(next_ns);
		atomic_store(&sent_ns, now_ns());
		atomic_store(&word, count);
		futex(FUTEX_WAKE_PRIVATE, 1);
	}
	join(results, 1);
	atomic_store(&stop, 1);
	for (int cpu = 0; busy && cpu < cpus; cpu++)
		if ((hogs[cpu].cpu != from && hogs[cpu].cpu != to))
			pthread_join(hogs[cpu].thread, NULL);
	keep_to(cpus, 1);
	snprintf(what, sizeof(what), "%d to %d, others %s", from, to, state);
	tell("wake", what, results, WAKES);
	free(results);
	free(hogs);
}

/* The gaps in gaps_ns, their number as the result. */
static void *look_at_clock(void *told)
{
	struct worker *self = told;
	int64_t before_ns, looked_ns;

	keep_to(self->cpu, 1);
	sleep_until(self->begin_ns);
	before_ns = now_ns();
	while (before_ns < self->begin_ns + GAP_NS) {
		work();
		looked_ns = now_ns();
		if (looked_ns - before_ns >= LEAST_GAP_NS && self->result < GAPS)
			self->gaps_ns[self->result++] = (int32_t)(looked_ns - before_ns);
		before_ns = looked_ns;
	}
	return NULL;
}

static int ascending(const void *one, const void *other)
{
	return *(const int32_t *)one - *(const int32_t *)other;
}

/* Of each CPU the middle gap, or the longest. */
static void gap(void)
{
	struct worker *all = start(cpus, NULL);

	for (int cpu = 0; cpu < cpus; cpu++) {
		all[cpu].gaps_ns = calloc(GAPS, sizeof(int32_t));
		check(all[cpu].gaps_ns == NULL, "calloc");
		check(pthread_create(&all[cpu].thread, NULL, look_at_clock, &all[cpu]) != 0, "thread");
	}
	join(all, cpus);
	for (int longest = 0; longest < 2; longest++) {
		struct worker *told = start(cpus, NULL);

		for (int cpu = 0; cpu < cpus; cpu++) {
			int64_t count = all[cpu].result;

			qsort(all[cpu].gaps_ns, (size_t)count, sizeof(int32_t), ascending);
			if (count > 0)
				told[cpu].result = all[cpu].gaps_ns[longest ? count - 1 : count / 2];
		}
		tell("gap", longest ? "longest" : "middle", told, cpus);
		free(told);
	}
	for (int cpu = 0; cpu < cpus; cpu++)
		free(all[cpu].gaps_ns);
	free(all);
}

static void *moving_hog(void *told)
{
	struct worker *self = told;

	keep_to(0, cpus);
	sleep_until(self->begin_ns);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		work();
		/* Nobody else writes it: cheaper than an increment of all CPUs'. */
		atomic_store_explicit(&self->result, self->result + 1, memory_order_relaxed);
	}
	return NULL;
}

static void balance(void)
{
	struct worker *all, *until, *during;
	char what[32];

	atomic_store(&stop, 0);
	all = start(2 * cpus, moving_hog);
	until = start(2 * cpus, NULL);
	during = start(2 * cpus, NULL);
	for (int window = 1; window <= BALANCES; window++) {
		sleep_until(all->begin_ns + window * BALANCE_NS);
		for (int number = 0; number < 2 * cpus; number++) {
			int64_t done = atomic_load(&all[number].result);

			during[number].result = done - until[number].result;
			until[number].result = done;
		}
		snprintf(what, sizeof(what), "two a CPU, %d", window);
		tell("balance", what, during, 2 * cpus);
	}
	atomic_store(&stop, 1);
	join(all, 2 * cpus);
	free(during);
	free(until);
	free(all);
}

int main(int count, char **arguments)
{
	int only_balance = count == 3 && strcmp(arguments[2], "balance") == 0;

	cpus = count == 2 || only_balance ? atoi(arguments[1]) : 0;
	if (cpus < 2) {
		fprintf(stderr, "usage: probe CPUS [balance]: 2 or more\n");
		return 2;
	}
	if (only_balance) {
		balance();
		return 0;
	}
	keep_to(cpus, 1);
	speed("first", 0, 1, 1);
	speed("last", cpus - 1, 1, 1);
	speed("half", 0, cpus / 2, 2);
	speed("all", 0, cpus, 1);
	wake("idle", 0, cpus / 2, 0);
	wake("idle", cpus - 1, 0, 0);
	wake("busy", 0, cpus / 2, 1);
	gap();
	balance();
	return 0;
}
