/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdint.h>

/* README.md says what they mean. */
struct options {
	uint64_t helpers;
	uint64_t background; /* a bit for each vCPU */
	uint64_t burst_us, gap_us;
	uint64_t holder, hold_us, hold_gap_us;
	uint64_t quantum_us, rounds_per_us;
	uint64_t interrupt;
	uint8_t address[4];
};

extern struct options options;

/* From words KEY=VALUE; others are somebody else's and skipped. Needs cpu_count. */
void options_read(const char *command_line);

#endif
