/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include "fail.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const gate_kind_names[] = {"futex", "eventfd", NULL};

static void futex_wait(atomic_uint *word, unsigned int while_value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

void gate_init(struct gate *gate, unsigned int kind)
{
	gate->kind = kind;
	gate->fd = -1;
	atomic_init(&gate->tokens, 0);
	atomic_init(&gate->waiters, 0);
	if (kind == GATE_EVENTFD) {
		gate->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
		if (gate->fd < 0)
			fail_run("cannot create an eventfd: %s", strerror(errno));
	}
}

static bool take_token(struct gate *gate)
{
	unsigned int tokens = atomic_load(&gate->tokens);

	while (tokens)
		if (atomic_compare_exchange_weak(&gate->tokens, &tokens, tokens - 1))
			return true;
	return false;
}

static void wait_for_token(struct gate *gate)
{
	while (!take_token(gate)) {
		atomic_fetch_add(&gate->waiters, 1);
		futex_wait(&gate->tokens, 0);
		atomic_fetch_sub(&gate->waiters, 1);
	}
}

void gate_post(struct gate *gate)
{
	uint64_t one = 1;

	if (gate->kind == GATE_EVENTFD) {
		if (write(gate->fd, &one, sizeof(one)) < 0)
			fail_run("cannot write to an eventfd: %s", strerror(errno));
		return;
	}
	atomic_fetch_add(&gate->tokens, 1);
	if (atomic_load(&gate->waiters)) /* spares the system call when nobody sleeps, as libc does */
		futex_wake(&gate->tokens, 1);
}

void gate_wait(struct gate *gate)
{
	uint64_t token;

	if (gate->kind == GATE_FUTEX)
		wait_for_token(gate);
	else if (read(gate->fd, &token, sizeof(token)) < 0)
		fail_run("cannot read from an eventfd: %s", strerror(errno));
}

void latch_open(struct latch *latch)
{
	atomic_store(&latch->open, 1);
	futex_wake(&latch->open, INT_MAX);
}

void latch_wait(struct latch *latch)
{
	while (!atomic_load(&latch->open))
		futex_wait(&latch->open, 0);
}
