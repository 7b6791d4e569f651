/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "cpu.h"

/* The interrupt table, one for all vCPUs. */
void descriptors_fill_idt(void);

/* A vCPU's own segments and its task state: where interrupts find a stack. */
void descriptors_prepare(struct cpu *cpu, uint32_t id);

#endif
