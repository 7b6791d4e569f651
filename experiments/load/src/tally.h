/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TALLY_H
#define TALLY_H

#include "gate.h"

#include <stddef.h>
#include <stdint.h>

/* Counts served requests for a thread that waits for the last one. */
struct tally {
	atomic_size_t served, expected;
	struct gate all_served;
};

void tally_init(struct tally *tally, unsigned int wake);
void tally_add(struct tally *tally);
void tally_wait(struct tally *tally, size_t expected);

#endif
