/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes QEMU's instruction counting (-icount, one thread) a machine whose CPUs are all equally fast.
 *
 * Preloaded into qemu-system-x86_64; nothing is rebuilt. Changes to the code in memory:
 *
 * 1. icount_percpu_budget() returns a constant: every CPU has the same number of instructions a turn.
 *    QEMU's own budget is what is left until the next timer, so a CPU's speed would depend on its number.
 * 2. PAUSE uses up what is left of the turn instead of giving it away. With `idle=poll` an idle CPU then
 *    costs its share of virtual time and nothing of the host's; otherwise the busy CPUs would become
 *    faster whenever another one idles. A CPU that spins on a lock loses its turn as on real hardware.
 * 3. Built with another PER_US than 1000: so many instructions of all CPUs together are a microsecond of
 *    the guest's. icount_get(), every clock and counter of the guest, is divided by that; icount_round(),
 *    the time until the next timer in instructions, multiplied. QEMU's own -icount shift can only make
 *    instructions longer. A kernel needs no change, however many CPUs share the thousand MIPS.
 *
 * The code it replaces is compared first; any other QEMU ends at once, with one line.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef TURN
#define TURN 10000 /* instructions; they must fit the 16 bits of icount_decr.u16.low */
#endif

#ifndef PER_US
#define PER_US 1000 /* QEMU's own clock with -icount shift=0 */
#endif

/* How the functions begin in QEMU 10.0; a displacement may be anything. */
#define ANY -1
#define ANY4 ANY, ANY, ANY, ANY

/* push, env to rbx, clear HF_INHIBIT_IRQ and RF. These instructions are moved, so nothing may be ANY. */
static const int16_t known_pause[] = {
	0x53, 0x48, 0x89, 0xfb,
	0x83, 0xa7, 0xb0, 0x00, 0x00, 0x00, 0xf7,
	0x48, 0x81, 0xa7, 0x88, 0x00, 0x00, 0x00, 0xff, 0xff, 0xfe, 0xff,
};

/* push twice, the number of CPUs to ebx, sub, compare replay_mode. */
static const int16_t known_budget[] = { 0x55, 0x53, 0x89, 0xfb, 0x48, 0x83, 0xec, 0x08, 0x83, 0x3d };

/* push, nop, the seqlock, icount_get_raw_locked(), qemu_icount_bias to rsi, icount_time_shift to ecx. */
#define BIAS_END 26
static const int16_t known_get[] = {
	0x53, 0x0f, 0x1f, 0x80, ANY4, 0x8b, 0x1d, ANY4, 0xe8, ANY4,
	0x48, 0x8b, 0x35, ANY4, 0x0f, 0xb7, 0x0d, ANY4,
};

/* icount_time_shift to ecx, 1 << cl, sign, lea -1(%rax,%rdi), sar, and what the compiler clears. */
static const int16_t known_round[] = {
	0x0f, 0xb7, 0x0d, ANY4, 0xb8, 0x01, 0x00, 0x00, 0x00, 0xd3, 0xe0, 0x48, 0x98,
	0x48, 0x8d, 0x44, 0x38, 0xff, 0x48, 0xd3, 0xf8,
};

/* movw $0, -8(%rdi): icount_decr.u16.low is the last but one field before env (CPUNegativeOffsetState). */
static const uint8_t burn[] = { 0x66, 0xc7, 0x47, 0xf8, 0x00, 0x00 };

/* jmp *0(%rip), and the address behind it. */
static const uint8_t jump[] = { 0xff, 0x25, 0x00, 0x00, 0x00, 0x00 };

static void fail(const char *why)
{
	fprintf(stderr, "turns: %s: this works with QEMU 10.0 for x86-64 only\n", why);
	_exit(3);
}

/* The function, if it is the one that is known. */
static uint8_t *find(const char *name, const int16_t *known, size_t length)
{
	uint8_t *code = dlsym(RTLD_DEFAULT, name);

	if (code == NULL)
		fail(name);
	for (size_t at = 0; at < length; at++)
		if (known[at] != ANY && known[at] != code[at])
			fail(name);
	return code;
}

#define FIND(name, known) find(name, known, sizeof(known) / sizeof(known[0]))

static void write_code(uint8_t *at, const uint8_t *code, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *first = (uint8_t *)((uintptr_t)at & ~(page - 1));
	size_t span = (size_t)(at + length - first);

	if (mprotect(first, span, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		fail("mprotect");
	memcpy(at, code, length);
	if (mprotect(first, span, PROT_READ | PROT_EXEC) != 0)
		fail("mprotect");
}

static size_t put_jump(uint8_t *at, const void *target)
{
	memcpy(at, jump, sizeof(jump));
	memcpy(at + sizeof(jump), &target, sizeof(target));
	return sizeof(jump) + sizeof(target);
}

static void replace(uint8_t *code, const void *with)
{
	uint8_t entry[sizeof(jump) + sizeof(void *)];

	put_jump(entry, with);
	write_code(code, entry, sizeof(entry));
}

/* PAUSE: burn, then the instructions that the jump to here has replaced, then the rest of them. */
static void burn_pauses(void)
{
	const size_t moved = sizeof(known_pause) / sizeof(known_pause[0]);
	uint8_t *pause = FIND("helper_pause", known_pause);
	uint8_t *detour = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (detour == MAP_FAILED)
		fail("mmap");
	memcpy(detour, burn, sizeof(burn));
	memcpy(detour + sizeof(burn), pause, moved);
	put_jump(detour + sizeof(burn) + moved, pause + moved);
	replace(pause, detour);
}

static void take_equal_turns(void)
{
	const uint32_t turn = TURN;
	uint8_t budget[] = { 0xb8, 0, 0, 0, 0, 0xc3 }; /* mov $TURN, %eax; ret */

	memcpy(budget + 1, &turn, sizeof(turn));
	write_code(FIND("icount_percpu_budget", known_budget), budget, sizeof(budget));
}

static int64_t (*instructions)(void);
static const volatile int64_t *bias_ns; /* what QEMU has skipped while all CPUs slept */

static int64_t dilated_get(void)
{
	return instructions() * 1000 / PER_US + *bias_ns;
}

/* Never too few: a timer that is not due yet would be waited for again. */
static int64_t dilated_round(int64_t ns)
{
	return (ns * PER_US + 999) / 1000;
}

static void dilate_the_clock(void)
{
	uint8_t *get = FIND("icount_get", known_get);
	uint8_t *round = FIND("icount_round", known_round);
	int32_t displacement;

	instructions = (int64_t (*)(void))dlsym(RTLD_DEFAULT, "icount_get_raw");
	if (instructions == NULL)
		fail("icount_get_raw");
	memcpy(&displacement, get + BIAS_END - sizeof(displacement), sizeof(displacement));
	bias_ns = (const int64_t *)(get + BIAS_END + displacement);
	replace(get, dilated_get);
	replace(round, dilated_round);
}

__attribute__((constructor)) static void change_the_machine(void)
{
	burn_pauses();
	take_equal_turns();
	if (PER_US != 1000)
		dilate_the_clock();
}
