/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORK_H
#define WORK_H

#include <stdint.h>

/* Computes; counted, not timed, so it costs the same CPU time however long the host lets it wait. */
void work_us(uint64_t us);

#endif
