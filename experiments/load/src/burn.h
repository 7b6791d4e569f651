/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BURN_H
#define BURN_H

#include <stdint.h>

/*
 * CPU work is a fixed number of loop iterations, not a wait for a clock. A thread that is preempted
 * does not get nearer to its end, which is what makes a request late, and a deadline on
 * CLOCK_THREAD_CPUTIME_ID would hide two things: in a guest that clock also counts the time stolen
 * by the host, and each read of it makes the kernel account the running thread (update_curr), which
 * under EEVDF ends a slice at once instead of at the next tick: the load would change what is
 * measured. The loop is calibrated once, so a fast or slow core changes the time, as with real work.
 */
struct burner {
	double iterations_per_us;
};

/*
 * A burner of this speed; for 0 it measures this CPU, about 20 ms: the best of several tries, so that
 * preemption does not count.
 */
struct burner burn_prepare(double iterations_per_us);

/* Works for this much CPU time, less when the run is stopped meanwhile. */
void burn(const struct burner *burner, double us);

#endif
