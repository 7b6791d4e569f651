/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CREW_H
#define CREW_H

#include "gate.h"
#include "json.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct crew_member {
	char name[16];
	pthread_t thread;
	pid_t tid;
	void (*work)(void *argument);
	void *argument;
	struct crew *crew;
};

/* The named threads of this process. */
struct crew {
	struct crew_member *members;
	size_t count, capacity;
	struct gate arrived;
};

#define ANY_CPU (-1)

void crew_init(struct crew *crew, size_t capacity);

/* Takes the calling thread in, under this name. */
void crew_adopt(struct crew *crew, const char *name);

/* Creates a thread named BASE-index, or just BASE for a negative index. */
void crew_start(struct crew *crew, const char *base, int index, int cpu, void (*work)(void *),
		void *argument);

/* Returns when each thread runs and its tid is known. */
void crew_wait_started(struct crew *crew);

/* Binds the i-th thread to one CPU, the (first + i)-th of those that the process may use, over and over. */
void crew_pin_each(const struct crew *crew, uint64_t first);

/* Waits for the end of all threads but the adopted one. */
void crew_join(struct crew *crew);

/* Writes {"main": tid, ...}. */
void crew_write_tids(const struct crew *crew, struct json *json, const char *key);

#endif
