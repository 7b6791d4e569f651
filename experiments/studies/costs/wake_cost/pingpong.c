/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads on one core wake each other by eventfd; says how much CPU time so many rounds took.
 * pingpong CPU ROUNDS: prints both thread ids, then one time in ns for each line that it reads.
 * The threads are real-time and CPU time is counted, so other work on the machine does not get in between. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static int there, back;
static long rounds;

static void await(int fd)
{
	uint64_t value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		abort();
}

static void notify(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

static void *answer(void *tid)
{
	*(volatile int *)tid = gettid();
	for (;;) {
		await(there);
		notify(back);
	}
	return NULL;
}

static int64_t used_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	volatile int other = 0;
	struct sched_param lowest = { .sched_priority = 1 };
	pthread_t thread;
	cpu_set_t set;
	char line[16];

	if (argc != 3)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	rounds = atol(argv[2]);
	there = eventfd(0, 0);
	back = eventfd(0, 0);
	if (sched_setaffinity(0, sizeof(set), &set) || sched_setscheduler(0, SCHED_FIFO, &lowest))
		return 1;
	if (there < 0 || back < 0)
		return 1;
	if (pthread_create(&thread, NULL, answer, (void *)&other))
		return 1;
	while (!other)
		usleep(1000);
	printf("%d %d\n", gettid(), other);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int64_t before_ns = used_ns();

		for (long round = 0; round < rounds; round++) {
			notify(there);
			await(back);
		}
		printf("%lld\n", (long long)(used_ns() - before_ns));
		fflush(stdout);
	}
	return 0;
}
