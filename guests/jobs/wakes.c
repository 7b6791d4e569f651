/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who woke whom, planted: siblings, another process, timers, more siblings than the table holds,
 * ended ones.
 */
#include "fail.h"
#include "jobs.h"
#include "knobs.h"
#include "sleeper.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU = 1, SIBLINGS = 40, EACH = 3 };

/* Ids up to RESERVED are never given out again (RESERVED_PIDS in kernel/pid.c). */
enum { RESERVED = 300, PID_MAX = 1024 };

struct order {
	struct sleeper *sleeper;
	pid_t tid;
	int count;
	struct gate go;
	struct gate done;
};

/* Sleeps as often as is wanted; a timer ends each of them. */
static void dozer(struct member *self)
{
	struct order *order = self->shared;

	gate_wait(&order->go, 0);
	for (int i = 0; i < order->count; i++)
		sleep_ns(2 * NS_PER_MS);
	gate_open(&order->done);
	gate_wait(&order->go, 1);
}

static void sibling(struct member *self)
{
	struct order *order = self->shared;

	gate_wait(&order->go, 0);
	sleeper_wake(order->sleeper, order->tid, order->count);
	gate_open(&order->done);
	gate_wait(&order->go, 1);
}

static void hire(struct member *member, struct order *order, void (*run)(struct member *self))
{
	*member = (struct member){.run = run, .shared = order, .cpu = CPU};
	crew_start(member);
}

static void command(struct order *order)
{
	gate_open(&order->go);
	gate_wait(&order->done, 0);
}

static void dismiss(struct member *member, struct order *order)
{
	gate_open(&order->go);
	crew_join(member);
}

static void by_another_process(struct sleeper *sleeper, pid_t tid, int count)
{
	pid_t child = fork();

	must(child);
	if (child == 0) {
		sleeper_wake(sleeper, tid, count);
		_Exit(0);
	}
	must(waitpid(child, NULL, 0));
}

static void report(const char *what, pid_t tid, const struct row *before, pid_t waker, int planted)
{
	struct row after = knobs_row(tid);

	printf("wakes by=%s planted=%d wakeups=%lld external=%lld other=%lld timers=%lld waker=%lld\n",
	       what, planted, after.wakeups - before->wakeups, after.external - before->external,
	       after.other - before->other, after.timers - before->timers,
	       waker ? knobs_woken_by(&after, waker) - knobs_woken_by(before, waker) : 0);
}

static void by_siblings(struct sleeper *sleeper, pid_t tid)
{
	static const int counts[] = {300, 200};
	struct order orders[2];
	struct member members[2];

	for (int i = 0; i < 2; i++) {
		orders[i] = (struct order){.sleeper = sleeper, .tid = tid, .count = counts[i]};
		hire(&members[i], &orders[i], sibling);
	}
	for (int i = 0; i < 2; i++) {
		struct row before = knobs_row(tid);

		command(&orders[i]);
		report("sibling", tid, &before, members[i].tid, counts[i]);
	}
	for (int i = 0; i < 2; i++)
		dismiss(&members[i], &orders[i]);
}

static void by_a_timer(void)
{
	struct order order = {.count = 50};
	struct member member;
	struct row before;

	hire(&member, &order, dozer);
	await_sleep(member.tid);
	before = knobs_row(member.tid);
	/* Opening the gate is one more wake-up, by us. */
	command(&order);
	await_sleep(member.tid);
	report("timer", member.tid, &before, getpid(), order.count);
	dismiss(&member, &order);
}

static int entries(const struct row *row)
{
	int count = row->wakers[0] != '-';

	for (const char *at = row->wakers; *at; at++)
		count += *at == ',';
	return count;
}

/* A sleeper of its own: the table must be empty. */
static void by_a_crowd(void)
{
	struct sleeper sleeper = {0};
	struct member target = {.run = sleeper_run, .shared = &sleeper, .cpu = CPU};
	static struct order orders[SIBLINGS];
	static struct member members[SIBLINGS];
	long long listed = 0;
	struct row row;

	crew_start(&target);
	for (int i = 0; i < SIBLINGS; i++) {
		orders[i] = (struct order){.sleeper = &sleeper, .tid = target.tid, .count = EACH};
		hire(&members[i], &orders[i], sibling);
	}
	for (int i = 0; i < SIBLINGS; i++)
		command(&orders[i]);
	row = knobs_row(target.tid);
	for (int i = 0; i < SIBLINGS; i++)
		listed += knobs_woken_by(&row, members[i].tid);
	printf("crowd siblings=%d each=%d wakeups=%lld external=%lld entries=%d listed=%lld "
	       "other=%lld\n",
	       SIBLINGS, EACH, row.wakeups, row.external, entries(&row), listed, row.other);
	for (int i = 0; i < SIBLINGS; i++)
		dismiss(&members[i], &orders[i]);
	row = knobs_row(target.tid);
	printf("ended wakeups=%lld external=%lld entries=%d other=%lld\n", row.wakeups,
	       row.external, entries(&row), row.other);
	sleeper_end(&sleeper, &target);
}

/* Few ids only, so that the kernel soon comes round to one that it has used. */
static void limit_pids(void)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", PID_MAX),
	    file = open("/proc/sys/kernel/pid_max", O_WRONLY);

	must(file);
	must(write(file, text, (size_t)length));
	close(file);
}

static void lodger(struct member *self)
{
	struct order *order = self->shared;

	gate_wait(&order->go, 0);
}

static void by_a_reused_id(struct sleeper *sleeper, pid_t tid)
{
	struct member first, next;
	struct order order;
	struct row row;

	limit_pids();
	do {
		order = (struct order){0};
		hire(&next, &order, lodger);
		dismiss(&next, &order);
	} while (next.tid <= RESERVED);
	order = (struct order){.sleeper = sleeper, .tid = tid, .count = 7};
	hire(&first, &order, sibling);
	command(&order);
	row = knobs_row(tid);
	printf("reused id=first counted=%lld\n", knobs_woken_by(&row, first.tid));
	dismiss(&first, &order);
	for (int i = 0; i < 2 * PID_MAX; i++) {
		order = (struct order){0};
		hire(&next, &order, lodger);
		row = knobs_row(tid);
		if (next.tid == first.tid)
			printf("reused id=again counted=%lld\n", knobs_woken_by(&row, next.tid));
		dismiss(&next, &order);
	}
}

void job_wakes(void)
{
	struct sleeper *sleeper = mmap(NULL, sizeof(*sleeper), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct member target = {.run = sleeper_run, .shared = sleeper, .cpu = CPU};
	struct row before;

	if (sleeper == MAP_FAILED)
		fail("mmap");
	sleeper->gate.shared = true;
	pin(CPU);
	crew_start(&target);
	by_siblings(sleeper, target.tid);
	before = knobs_row(target.tid);
	by_another_process(sleeper, target.tid, 150);
	report("process", target.tid, &before, 0, 150);
	by_a_timer();
	by_a_crowd();
	by_a_reused_id(sleeper, target.tid);
	sleeper_end(sleeper, &target);
}
