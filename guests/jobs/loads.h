/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two loads that do little but wake each other. All on one CPU, which is never idle meanwhile: in a
 * counted guest the time that is returned is the number of instructions.
 */
#ifndef LOADS_H
#define LOADS_H

#include <stdint.h>

enum { MESSAGING_SIDE = 20 };

/* Called when the threads are there and have not begun. */
typedef void loads_ready(void);

/* Two threads pass a word through two pipes back and forth, as `perf bench sched pipe -T` does. */
int64_t load_pipe(int turns, loads_ready *ready);

/*
 * One group of `perf bench sched messaging -t`: MESSAGING_SIDE senders write 100 bytes to each of
 * as many receivers, `turns` times, over sockets.
 */
int64_t load_messaging(int turns, loads_ready *ready);

#endif
