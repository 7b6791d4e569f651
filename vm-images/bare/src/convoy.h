/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVOY_H
#define CONVOY_H

#include "cpu.h"

/* Computes so long with the lock that convoy requests need. */
void convoy_hold(struct cpu *cpu, uint64_t us);

#endif
