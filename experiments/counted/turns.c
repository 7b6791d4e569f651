/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes QEMU's instruction counting (-icount, one thread) a machine whose CPUs are all equally fast.
 *
 * Preloaded into qemu-system-x86_64; nothing is rebuilt. Two changes to the code in memory:
 *
 * 1. icount_percpu_budget() returns a constant: every CPU has the same number of instructions a turn.
 *    QEMU's own budget is what is left until the next timer, so a CPU's speed would depend on its number.
 * 2. PAUSE uses up what is left of the turn instead of giving it away. With `idle=poll` an idle CPU then
 *    costs its share of virtual time and nothing of the host's; otherwise the busy CPUs would become
 *    faster whenever another one idles. A CPU that spins on a lock loses its turn as on real hardware.
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

/* helper_pause() begins so in QEMU 10.0: push, env to rbx, clear HF_INHIBIT_IRQ and RF. */
static const uint8_t known[] = {
	0x53, 0x48, 0x89, 0xfb,
	0x83, 0xa7, 0xb0, 0x00, 0x00, 0x00, 0xf7,
	0x48, 0x81, 0xa7, 0x88, 0x00, 0x00, 0x00, 0xff, 0xff, 0xfe, 0xff,
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

static uint8_t *find(const char *name)
{
	uint8_t *code = dlsym(RTLD_DEFAULT, name);

	if (code == NULL)
		fail(name);
	return code;
}

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

__attribute__((constructor)) static void take_equal_turns(void)
{
	const uint32_t turn = TURN;
	uint8_t budget[] = { 0xb8, 0, 0, 0, 0, 0xc3 }; /* mov $TURN, %eax; ret */
	uint8_t entry[sizeof(jump) + sizeof(void *)];
	uint8_t *pause = find("helper_pause");
	uint8_t *detour;
	size_t used = 0;

	if (memcmp(pause, known, sizeof(known)) != 0)
		fail("helper_pause");
	detour = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (detour == MAP_FAILED)
		fail("mmap");
	memcpy(detour, burn, sizeof(burn));
	used += sizeof(burn);
	memcpy(detour + used, known, sizeof(known));
	used += sizeof(known);
	put_jump(detour + used, pause + sizeof(known));
	put_jump(entry, detour);
	write_code(pause, entry, sizeof(entry));

	memcpy(budget + 1, &turn, sizeof(turn));
	write_code(find("icount_percpu_budget"), budget, sizeof(budget));
}
