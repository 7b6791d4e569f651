/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a VM has had: V = CPU ns x 100 / cpu.weight. Of those that wait for a CPU the VM with the least V goes first.
 *
 * A slice is charged when it begins and what is left of it is given back, so that no other CPU takes the same VM
 * meanwhile for one that has had nothing.
 *
 * VMs that meet at a CPU: if the one furthest behind has rested (it slept, or ran with all its threads, within a second), it has
 * saved up twice the largest debt at most. That is measured from the one furthest behind of those that have not rested, so
 * that others that rested at the same time save up no more for it; or, if all have, from the one furthest ahead. If it has not
 * rested, the one ahead is forgiven what is more than FORGIVEN times its debt: the other could not have used it.
 */
#ifndef DASEC_SCX_SHARE_H
#define DASEC_SCX_SHARE_H

#include "scx_state.h"

#define SAVED_UP 2
#define FORGIVEN 10

static __u64 virtual(const struct vm *v, __u64 ns)
{
	return ns * NEUTRAL_VM / (v->weight ? v->weight : NEUTRAL_VM);
}

static void charge(struct task_struct *p, struct thread *t)
{
	__u64 sum = p->se.sum_exec_runtime, ns = sum - t->charged, time;
	struct vm *v = vm_at(t->vm);

	t->charged = sum;
	if (!v || t->vm == KERNEL || (__s64)ns <= 0)
		return;
	t->burst_ns += ns;
	__sync_fetch_and_add(&v->used_ns, ns);
	if (t->class == CRITICAL) {
		t->bucket_ns += ns;
		__sync_fetch_and_add(&v->critical_ns, ns);
	}
	time = virtual(v, ns);
	if (time <= t->ahead) {
		t->ahead -= time;
		return;
	}
	__sync_fetch_and_add(&v->time, time - t->ahead);
	t->ahead = 0;
}

static void charge_ahead(struct thread *t, struct vm *v, __u64 slice)
{
	if (t->vm == KERNEL || t->class != OTHER)
		return;
	t->ahead = virtual(v, slice);
	__sync_fetch_and_add(&v->time, t->ahead);
}

static void give_back(struct thread *t)
{
	struct vm *v = vm_at(t->vm);

	if (v && t->ahead)
		__sync_fetch_and_add(&v->time, -t->ahead);
	t->ahead = 0;
}

/* V of a VM that has what is due to it in twice that time, by the weights of all that are busy. */
static __u64 due_time(void)
{
	__u64 all = active_weight;

	return 2 * options.debt_ns * online_cpus * NEUTRAL_VM / (all ? all : NEUTRAL_VM);
}

/* How far ahead a VM in its share may be: that, and so much time of a CPU at most. */
static __u64 debt_of(const struct vm *v)
{
	__u64 own = virtual(v, options.debt_ns), due = due_time();

	return due < own ? due : own;
}

static bool is_ahead(const struct vm *v, __u64 of)
{
	return before(of + debt_of(v), v->time);
}

/* VMs that meet at a CPU, since they wait for it or run there. */
struct meeting {
	__u64 least;
	__u64 most;
	__u64 settled;	/* the least of those that have not rested; 0: all have */
	__u32 behind;	/* whose is the least; 0: nobody's */
	__u32 ahead;	/* whose is the most */
};

/* Within a turn: a VM that waits has been served by then, so its V says no longer that it rested. */
static bool has_rested(const struct vm *v, __u64 now)
{
	return before(now, v->rested_at + options.turn_ns);
}

static void meet(struct meeting *m, __u32 vm, const struct vm *v, __u64 now)
{
	__u64 time = v->time;

	if (!m->behind || before(time, m->least)) {
		m->least = time;
		m->behind = vm;
	}
	if (!m->ahead || before(m->most, time)) {
		m->most = time;
		m->ahead = vm;
	}
	if (has_rested(v, now) || !waits(v))
		return;
	if (!m->settled || before(time, m->settled))
		m->settled = time;
}

part int bound_claims(struct meeting *m, __u64 now)
{
	struct vm *low, *high;
	__u64 bound;

	if (!m)
		return 0;
	if (m->behind == m->ahead)
		return 0;
	low = vm_at(m->behind);
	high = vm_at(m->ahead);
	if (!low)
		return 0;
	if (!high)
		return 0;
	if (!waits(low))
		low->rested_at = now;
	if (has_rested(low, now)) {
		bound = (m->settled ? m->settled : m->most) - SAVED_UP * due_time() - virtual(low, options.slice_ns);
		if (before(low->time, bound))
			low->time = bound;
	} else {
		bound = low->time + FORGIVEN * debt_of(high) + virtual(high, options.slice_ns);
		if (before(bound, high->time))
			high->time = bound;
	}
	return 0;
}

/* What is counted of a VM is exchanged whole: its last thread may stop here while another begins there. */
static void count(struct vm *v, __u32 weight)
{
	__u32 counted = __sync_lock_test_and_set(&v->counted, weight);

	__sync_fetch_and_add(&active_weight, (__u64)weight - counted);
}

static void begin_activity(struct vm *v, __u64 now)
{
	v->rested_at = now;
	count(v, v->weight);
}

static void end_activity(struct vm *v)
{
	count(v, 0);
	if (*(volatile __u32 *)&v->threads) /* somebody has begun between */
		count(v, v->weight);
}

#endif
