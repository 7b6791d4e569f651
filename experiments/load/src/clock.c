/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include "fail.h"

#include <string.h>
#include <sys/prctl.h>

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_thread_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_process_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_cpu_ns_of(pthread_t thread)
{
	clockid_t clock;
	int error = pthread_getcpuclockid(thread, &clock);

	if (error)
		fail_run("cannot read a thread's CPU clock: %s", strerror(error));
	return read_clock(clock);
}

struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
}

void clock_precise_timers(void)
{
	/*
	 * The default slack lets the kernel fire a timer up to 50 us late to batch wake-ups. On an
	 * arrival waiter that delay would be added to every measured request, whatever the scheduler
	 * does. Only the thread that asks gets it, but threads created later inherit it.
	 */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}
