/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLOCK_H
#define CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

uint64_t clock_now_ns(void);        /* CLOCK_MONOTONIC */
uint64_t clock_thread_cpu_ns(void); /* CPU time of the calling thread */
uint64_t clock_process_cpu_ns(void);
uint64_t clock_cpu_ns_of(pthread_t thread);
struct timespec clock_timespec(uint64_t ns);

/* Gives the calling thread timers without slack. */
void clock_precise_timers(void);

#endif
