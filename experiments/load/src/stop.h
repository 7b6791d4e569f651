/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STOP_H
#define STOP_H

#include <stdbool.h>
#include <stdint.h>

/* SIGTERM and SIGINT end the run early; its results are still written. */
void stop_install_handlers(void);

/* The run is over, by a signal or by stop_all(). */
bool stop_requested(void);

/* It was a signal. */
bool stop_interrupted(void);

/* Does what a signal does, for one that came to another process of this run. */
void stop_interrupt(void);

/* Ends every wait in stop_wait_until(), now and later. */
void stop_all(void);

/* Makes a signal also add 1 to this eventfd, for a thread that waits in read() or epoll. */
void stop_notify(int eventfd);

/* Sleeps until this CLOCK_MONOTONIC time; false when the run was stopped before. */
bool stop_wait_until(uint64_t deadline_ns);

#endif
