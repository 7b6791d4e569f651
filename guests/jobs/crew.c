/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include "fail.h"
#include "knobs.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t clock)
{
	struct timespec time;

	must(clock_gettime(clock, &time));
	return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

int64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t own_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void sleep_until_ns(int64_t moment_ns)
{
	struct timespec moment = {.tv_sec = moment_ns / NS_PER_S, .tv_nsec = moment_ns % NS_PER_S};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) == EINTR)
		;
}

void sleep_ns(int64_t length_ns)
{
	sleep_until_ns(now_ns() + length_ns);
}

void burn_ns(int64_t length_ns)
{
	int64_t end_ns = own_cpu_ns() + length_ns;

	while (own_cpu_ns() < end_ns)
		;
}

void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(sched_setaffinity(0, sizeof(set), &set));
}

void real_time(int priority)
{
	struct sched_param param = {.sched_priority = priority};

	must(sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param));
}

static long futex(struct gate *gate, int operation, uint32_t value)
{
	return syscall(SYS_futex, &gate->opened,
		       operation | (gate->shared ? 0 : FUTEX_PRIVATE_FLAG), value, NULL, NULL, 0);
}

void gate_wait(struct gate *gate, uint32_t seen)
{
	while (__atomic_load_n(&gate->opened, __ATOMIC_ACQUIRE) == seen)
		futex(gate, FUTEX_WAIT, seen);
}

void gate_open(struct gate *gate)
{
	__atomic_add_fetch(&gate->opened, 1, __ATOMIC_RELEASE);
	futex(gate, FUTEX_WAKE, INT_MAX);
}

static void *enter(void *argument)
{
	struct member *member = argument;

	member->tid = gettid();
	pin(member->cpu);
	gate_open(&member->born);
	member->run(member);
	return NULL;
}

void crew_start(struct member *member)
{
	member->born = (struct gate){0};
	errno = pthread_create(&member->thread, NULL, enter, member);
	if (errno)
		fail("pthread_create");
	gate_wait(&member->born, 0);
}

void crew_join(struct member *member)
{
	char path[64];

	errno = pthread_join(member->thread, NULL);
	if (errno)
		fail("pthread_join");
	/*
	 * That returns when the thread's stack is free, a little before the kernel has forgotten
	 * it.
	 */
	snprintf(path, sizeof(path), "/proc/self/task/%d", member->tid);
	while (access(path, F_OK) == 0)
		sleep_ns(NS_PER_MS);
}

void crew_hog(struct member *self)
{
	bool *stop = self->shared;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE))
		;
}

void await_sleep(pid_t tid)
{
	while (knobs_row(tid).state != 'S')
		sleep_ns(NS_PER_MS);
}
