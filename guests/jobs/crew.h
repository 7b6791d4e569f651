/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, pinned threads and a gate that one thread sleeps at until another opens it. */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

int64_t now_ns(void);
int64_t own_cpu_ns(void);
void sleep_ns(int64_t length_ns);
void sleep_until_ns(int64_t moment_ns);

/* Uses this much CPU time, however long that takes. */
void burn_ns(int64_t length_ns);

/* The calling thread runs on this CPU only. */
void pin(int cpu);

/* The calling thread becomes SCHED_FIFO, or SCHED_OTHER again at priority 0. */
void real_time(int priority);

/* Woken by nobody but who opens it; `shared` lets another process do that. */
struct gate {
	uint32_t opened;
	bool shared;
};

void gate_wait(struct gate *gate, uint32_t seen);
void gate_open(struct gate *gate);

/* A thread with its own function; `tid` is known when crew_start returns. */
struct member {
	void (*run)(struct member *self);
	void *shared;
	int cpu;
	pid_t tid;
	pthread_t thread;
	struct gate born;
};

void crew_start(struct member *member);
void crew_join(struct member *member);

/* Burns until `stop`, a bool behind `shared`, becomes true. */
void crew_hog(struct member *self);

/* Returns when procfs says that this thread is blocked. */
void await_sleep(pid_t tid);

#endif
