/* SPDX-License-Identifier: Apache-2.0 */
#ifndef START_H
#define START_H

#include <stdint.h>

/* Waits for a line with a CLOCK_MONOTONIC time in ns on standard input; without one the run fails. */
uint64_t start_read(void);

#endif
