/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu.h"

struct statistics statistics_of(const struct cpu *cpu)
{
	struct statistics copy = cpu->statistics;

	copy.cpus = cpu_count;
	copy.halts = cpu->halts;
	copy.bells = cpu->bells;
	copy.devices = cpu->devices;
	copy.timers = cpu->timers;
	return copy;
}
