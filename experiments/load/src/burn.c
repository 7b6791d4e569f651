/* SPDX-License-Identifier: Apache-2.0 */
#include "burn.h"

#include "clock.h"
#include "stop.h"

#define CALIBRATION_TRIES 20
#define CALIBRATION_ITERATIONS 500000ULL
#define STEPS 3
#define STEPS_OF_A_TRY 10 /* so the clock's step is a tenth of what is measured, at most */

/* A stop is noticed after this much work. */
#define PIECE_US 1000.0

#ifdef COUNTED_NOPS
/*
 * For guests whose clock counts instructions: there a nop takes as long as any other instruction, and QEMU
 * translates it to nothing, so that an hour of such work costs the host minutes. 200 to an iteration.
 */
static void iterate(uint64_t iterations)
{
	for (uint64_t i = 0; i < iterations; i++)
		__asm__ volatile(".rept 200\n\tnop\n\t.endr");
}
#else
static void iterate(uint64_t iterations)
{
	uint64_t x = iterations;

	for (uint64_t i = 0; i < iterations; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		__asm__ volatile("" : "+r"(x)); /* each step needs the last one: nothing to optimise */
	}
}
#endif

static uint64_t spent_ns(uint64_t iterations)
{
	uint64_t before_ns = clock_thread_cpu_ns();

	iterate(iterations);
	return clock_thread_cpu_ns() - before_ns;
}

/* What the clock advances by: a tick of milliseconds where the kernel has found its TSC unstable. */
static uint64_t step_ns(void)
{
	uint64_t before_ns = clock_thread_cpu_ns(), least_ns = UINT64_MAX;

	for (int i = 0; i < STEPS; i++) {
		uint64_t now_ns;

		while ((now_ns = clock_thread_cpu_ns()) == before_ns)
			;
		if (now_ns - before_ns < least_ns)
			least_ns = now_ns - before_ns;
		before_ns = now_ns;
	}
	return least_ns;
}

/* The least of some tries, or of those until one was too short to be measured. */
static uint64_t least_spent_ns(uint64_t iterations, uint64_t enough_ns)
{
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < CALIBRATION_TRIES && least_ns >= enough_ns; i++) {
		uint64_t try_ns = spent_ns(iterations);

		if (try_ns < least_ns)
			least_ns = try_ns;
	}
	return least_ns;
}

/* The step is asked for anew each time: a guest's clock was seen to get coarser, and a try to take 0 ns. */
static double calibrate(void)
{
	for (uint64_t iterations = CALIBRATION_ITERATIONS;; iterations *= 2) {
		uint64_t enough_ns = STEPS_OF_A_TRY * step_ns();
		uint64_t least_ns = least_spent_ns(iterations, enough_ns);

		if (least_ns >= enough_ns)
			return (double)iterations * (double)NS_PER_US / (double)least_ns;
	}
}

struct burner burn_prepare(double iterations_per_us)
{
	return (struct burner){iterations_per_us > 0.0 ? iterations_per_us : calibrate()};
}

void burn(const struct burner *burner, double us)
{
	for (; us > PIECE_US && !stop_requested(); us -= PIECE_US)
		iterate((uint64_t)(PIECE_US * burner->iterations_per_us));
	if (!stop_requested())
		iterate((uint64_t)(us * burner->iterations_per_us));
}
