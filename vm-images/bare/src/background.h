/* SPDX-License-Identifier: Apache-2.0 */
/* What nobody waits for: a vCPU's own work beside requests, and the holder of the lock that requests need. */
#ifndef BACKGROUND_H
#define BACKGROUND_H

#include "cpu.h"

/* Does some of it, until an interrupt comes; false: there is none now, the vCPU may sleep. */
bool background_turn(struct cpu *cpu);

#endif
