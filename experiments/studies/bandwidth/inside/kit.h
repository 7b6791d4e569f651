/* SPDX-License-Identifier: Apache-2.0
 *
 * What the figures share: groups and their limits, work whose length is counted in instructions, processes that
 * begin and end together, and lines of JSON for the host.
 */
#ifndef BANDWIDTH_KIT_H
#define BANDWIDTH_KIT_H

#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define MOST_WORKERS 16
#define MOST_LATENCIES 8192
#define US_PER_S 1000000LL

struct worker {
	uint64_t done;
	int count;
	uint64_t latency_ns[MOST_LATENCIES];
};

/* Between the processes of a run. */
struct shared {
	atomic_int go, stop;
	atomic_long left;
	uint64_t begin_ns;
	struct worker worker[MOST_WORKERS];
};

extern struct shared *shared;

/* How busy a group was, and how often its limit stopped it. */
struct use {
	long long periods, throttled, throttled_us, used_us;
};

/* The run's own numbers: "name:key=value:key=value". */
double number(const char *key, double otherwise);
void begin_run(const char *run);

uint64_t now_ns(void);
void sleep_until(uint64_t ns);
void set_speed(double iterations_per_us);
void work_us(double us);
double chance(uint64_t *state);

/* Each stops the guest with a line that says what failed. */
void put(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *in_group(const char *group, const char *file);
void make_group(const char *group);
void remove_group(const char *group);
/* A quota of 0 is none. */
void limit(const char *group, double quota_us, double period_us, double burst_us);
struct use use_of(const char *group);
struct use use_since(const char *group, struct use before);
void keep_to(int first, int last);
/* In a group, on CPUs from first to last, when the run goes. */
pid_t start(const char *group, int first, int last, void (*job)(int), int id);
void end(pid_t pid);
void hog(int id);

/* A line of JSON, begun with the run's name; then numbers; then its end. */
void say_run(void);
void say(const char *key, double value);
void say_latencies(const struct worker *workers, int count);
void say_end(void);

void fixed_work(void);
void lock_events(void);
void fair_shares(void);
void critical_vcpu(void);
void joint_bursts(void);

#endif
