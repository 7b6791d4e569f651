/* SPDX-License-Identifier: Apache-2.0 */
#include "crew.h"

#include "fail.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Thousands of threads must fit; no thread of this tool keeps more than a few hundred bytes. */
#define STACK_BYTES (128 * 1024)

void crew_init(struct crew *crew, size_t capacity)
{
	crew->members = calloc(capacity, sizeof(*crew->members));
	if (!crew->members)
		fail_run("cannot allocate %zu threads", capacity);
	crew->count = 0;
	crew->capacity = capacity;
	gate_init(&crew->arrived, GATE_FUTEX);
}

static struct crew_member *add_member(struct crew *crew, const char *base, int index)
{
	struct crew_member *member = &crew->members[crew->count];

	if (crew->count == crew->capacity)
		fail_run("more threads than planned: %zu", crew->capacity);
	crew->count++;
	member->crew = crew;
	if (index < 0)
		snprintf(member->name, sizeof(member->name), "%s", base);
	else
		snprintf(member->name, sizeof(member->name), "%s-%d", base, index);
	return member;
}

void crew_adopt(struct crew *crew, const char *name)
{
	struct crew_member *member = add_member(crew, name, -1);

	member->thread = pthread_self();
	member->tid = gettid();
	prctl(PR_SET_NAME, member->name);
}

static void *run_member(void *argument)
{
	struct crew_member *member = argument;

	prctl(PR_SET_NAME, member->name);
	member->tid = gettid();
	gate_post(&member->crew->arrived);
	member->work(member->argument);
	return NULL;
}

static void pin(pthread_attr_t *attributes, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_attr_setaffinity_np(attributes, sizeof(cpus), &cpus);
}

void crew_start(struct crew *crew, const char *base, int index, int cpu, void (*work)(void *),
		void *argument)
{
	struct crew_member *member = add_member(crew, base, index);
	pthread_attr_t attributes;
	int error;

	member->work = work;
	member->argument = argument;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (cpu != ANY_CPU)
		pin(&attributes, cpu);
	error = pthread_create(&member->thread, &attributes, run_member, member);
	pthread_attr_destroy(&attributes);
	if (error)
		fail_run("cannot start thread %s: %s", member->name, strerror(error));
}

void crew_wait_started(struct crew *crew)
{
	for (size_t i = 0; i < crew->count; i++)
		if (!pthread_equal(crew->members[i].thread, pthread_self()))
			gate_wait(&crew->arrived);
}

void crew_pin_each(const struct crew *crew, uint64_t first)
{
	cpu_set_t allowed, one;
	int cpus[CPU_SETSIZE];
	size_t count = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[count++] = cpu;
	for (size_t i = 0; i < crew->count; i++) {
		CPU_ZERO(&one);
		CPU_SET(cpus[(first + i) % count], &one);
		if (sched_setaffinity(crew->members[i].tid, sizeof(one), &one))
			fail_run("cannot pin thread %s: %s", crew->members[i].name, strerror(errno));
	}
}

void crew_join(struct crew *crew)
{
	for (size_t i = 0; i < crew->count; i++)
		if (!pthread_equal(crew->members[i].thread, pthread_self()))
			pthread_join(crew->members[i].thread, NULL);
}

void crew_write_tids(const struct crew *crew, struct json *json, const char *key)
{
	json_open_object(json, key);
	for (size_t i = 0; i < crew->count; i++)
		json_count(json, crew->members[i].name, (uint64_t)crew->members[i].tid);
	json_close_object(json);
}
