/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into an application of TailBench that asks itself (mode integrated): it loads its data,
 * and waits to be told when requests begin, as dasec-load does with --start-on-stdin.
 *
 * All its serving threads meet once, at a barrier, when they have loaded. Only behind it the first
 * arrival is drawn, from the time that it is then. So this barrier lets them through when standard
 * input has said a CLOCK_MONOTONIC time, in ns, and that time has come. The file that DASEC_GATE_READY
 * names is there as soon as they wait for that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fail(const char *what)
{
	fprintf(stderr, "dasec-gate: %s\n", what);
	_exit(1);
}

static void await_start(void)
{
	const char *ready = getenv("DASEC_GATE_READY");
	unsigned long long start_ns;
	struct timespec now, start;
	int file = ready ? open(ready, O_CREAT | O_WRONLY | O_CLOEXEC, 0644) : -1;

	if (file < 0)
		fail("DASEC_GATE_READY: names no file that can be made");
	close(file);
	if (scanf("%llu", &start_ns) != 1)
		fail("standard input says no time");
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (start_ns < (unsigned long long)now.tv_sec * NS_PER_S + (unsigned long long)now.tv_nsec)
		fail("--start-at-ns: is over");
	start.tv_sec = (time_t)(start_ns / NS_PER_S);
	start.tv_nsec = (long)(start_ns % NS_PER_S);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL) == EINTR)
		;
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	/* POSIX has it so that a pointer to an object can be one to a function. */
	static int (*next)(pthread_barrier_t *);
	int result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_barrier_wait");
	if (!next)
		fail("no pthread_barrier_wait to be found");
	result = next(barrier);
	pthread_once(&once, await_start);
	return result;
}
