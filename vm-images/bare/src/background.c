/* SPDX-License-Identifier: Apache-2.0 */
#include "background.h"

#include "convoy.h"
#include "lapic.h"
#include "options.h"
#include "work.h"

#define NS_PER_US 1000
#define LONGEST_US 4000000 /* of one timer, which counts ns in 32 bits; a longer rest has several */

/* Of 0: none, and no timer, which would not come. */
static void rest(struct cpu *cpu, uint64_t us)
{
	uint64_t first_us = us < LONGEST_US ? us : LONGEST_US;

	cpu->resting = us;
	cpu->rest_left_us = us - first_us;
	cpu->timers_at_rest = cpu->timers;
	if (us)
		lapic_timer_arm((uint32_t)(first_us * NS_PER_US));
}

static bool rests(struct cpu *cpu)
{
	if (cpu->resting && cpu->timers != cpu->timers_at_rest)
		rest(cpu, cpu->rest_left_us);
	return cpu->resting;
}

static bool hold(struct cpu *cpu)
{
	if (rests(cpu))
		return false;
	convoy_hold(cpu, options.hold_us);
	cpu->statistics.holds++;
	rest(cpu, options.hold_gap_us);
	return true;
}

static bool compute(struct cpu *cpu)
{
	if (rests(cpu))
		return false;
	if (!cpu->us_left)
		cpu->us_left = options.burst_us;
	while (cpu->us_left && !cpu->pending) {
		uint64_t us = cpu->us_left < options.quantum_us ? cpu->us_left : options.quantum_us;

		work_us(us);
		cpu->us_left -= us;
		cpu->statistics.quanta++;
	}
	if (!cpu->us_left)
		rest(cpu, options.gap_us);
	return true;
}

bool background_turn(struct cpu *cpu)
{
	if (options.holder && cpu->id == options.holder)
		return hold(cpu);
	return options.background & 1ul << cpu->id && compute(cpu);
}
