/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a VM has had: V = CPU ns x 100 / what its cpu.weight is worth (scx_tree.h). Of those that wait for a CPU the VM with the least V
 * goes first.
 *
 * A slice is charged when it begins and what is left of it is given back, so that no other CPU takes the same VM
 * meanwhile for one that has had nothing.
 */
#ifndef DASEC_SCX_SHARE_H
#define DASEC_SCX_SHARE_H

#include "scx_state.h"

#define MODEST 2   /* critical threads that use less than one part of so many of what is due to their VM */
#define SAVED_UP 2 /* of what is due, by one that has rested (scx_meet.h) */
#define AS_FAR SAVED_UP /* debts: as much as others may claim, so that what they lose to it once is not lost anew */

static __u64 virtual(const struct vm *v, __u64 ns)
{
	return ns * NEUTRAL_WORTH / (v->worth ? v->worth : NEUTRAL_WORTH);
}

/* The same of what a thread has used. What is less than one of V is not lost: many short bursts may be. */
static __u64 virtual_use(struct thread *t, const struct vm *v, __u64 ns)
{
	__u32 worth = v->worth ? v->worth : NEUTRAL_WORTH;
	__u64 neutral = ns * NEUTRAL_WORTH + t->uncharged;

	t->uncharged = neutral % worth;
	return neutral / worth;
}

/* V of a VM that has what is due to it in that time, by the weights of all that are busy. */
static __u64 due_beside(__u64 all)
{
	return options.debt_ns * online_cpus * NEUTRAL_WORTH / (all ? all : NEUTRAL_WORTH);
}

static __u64 due_time(void)
{
	return due_beside(active_presence);
}

/*
 * Whether its critical threads are denied nothing until it is as far ahead as AS_FAR. All that those use which began while it was
 * modest is counted, so they have half of what is due to it in the long run, and it falls back behind the others.
 */
static bool is_modest(const struct vm *v, __u64 now)
{
	return options.modest_ns && !before(now + options.modest_ns, v->modest_from);
}

/* On so many CPUs, of which a part of what is due to it may be had, beside all that were busy of late: it saves up between bursts. */
static void use_modestly(struct vm *v, __u64 time, __u32 allowed)
{
	__u64 late = late_presence, active = active_presence, from = v->modest_from, now = bpf_ktime_get_ns();
	__u64 due = due_beside(late > active ? late : active);

	if (allowed < online_cpus)
		due = due * allowed / online_cpus;
	if (before(from, now))
		__sync_val_compare_and_swap(&v->modest_from, from, now);
	__sync_fetch_and_add(&v->modest_from, time * MODEST * (options.debt_ns >> 10) / ((due >> 10) + 1));
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
	time = virtual_use(t, v, ns);
	if (t->modest)
		use_modestly(v, time, t->home == ANY_CPU ? scx_of(p)->nr_cpus_allowed : MAX_CPUS);
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

static void move(struct vm *v, __u64 by)
{
	__sync_fetch_and_add(&v->time, by);
	__sync_fetch_and_add(&v->moved, by);
}

/* Of several CPUs that do so at once the first one moves it. */
static void move_to(struct vm *v, __u64 time)
{
	__u64 from = __sync_lock_test_and_set(&v->time, time);

	__sync_fetch_and_add(&v->moved, time - from);
}

/* How far ahead a VM in its share may be: that, and so much time of a CPU at most. */
static __u64 debt_within(__u64 due, const struct vm *v)
{
	__u64 own = virtual(v, options.debt_ns);

	return due < own ? due : own;
}

static __u64 debt_of(const struct vm *v)
{
	return debt_within(due_time(), v);
}

/* How far it may be where its threads may run on several CPUs, and may be modest. */
static __u64 debt_or_more(const struct vm *v, __u64 now)
{
	return is_modest(v, now) ? AS_FAR * debt_of(v) : debt_of(v);
}

/* Whether all its threads that run or wait may do so on this CPU only: it has nothing of what is due to it elsewhere. */
static bool is_confined_to(__s32 cpu, __u32 vm, const struct vm *v)
{
	struct stay *here = stay_at(cpu, vm);

	return here && here->threads && here->threads == v->threads;
}

/* What is counted of a VM is exchanged whole: its last thread may stop here while another begins there. */
static void count(struct vm *v, __u32 presence)
{
	__u32 counted = __sync_lock_test_and_set(&v->counted, presence);

	__sync_fetch_and_add(&active_presence, (__u64)presence - counted);
}

/*
 * Its first thread there has woken up. What was due to it meanwhile on so many CPUs may lapse: nobody owes it time that it slept
 * through.
 */
static void begin_stay(struct stay *s, const struct vm *v, __u64 cpus, __u64 now)
{
	__u64 slept = now - s->slept_at, all = active_presence, most = SAVED_UP * due_time();

	if (slept > options.turn_ns)
		slept = options.turn_ns;
	if (before(s->woke_at + options.turn_ns, now))
		s->lapsing = 0;
	s->lapsing += slept * cpus * NEUTRAL_WORTH / (all ? all : NEUTRAL_WORTH);
	if (s->lapsing > most)
		s->lapsing = most;
	s->rested_at = s->woke_at = now;
	s->woke_with = v->time - v->moved;
}

/* Of the time since then what lies in a span. Another CPU may have begun the next one, or a stay, meanwhile. */
static __u64 overlap(__u64 since, __u64 from, __u64 to)
{
	if (before(since, from))
		since = from;
	return before(since, to) ? to - since : 0;
}

static void begin_activity(struct vm *v, struct stay *host, __u64 now)
{
	count(v, v->presence);
	begin_stay(host, v, online_cpus, now);
}

static void end_activity(struct vm *v, struct stay *host, __u64 now)
{
	host->slept_at = now;
	__sync_fetch_and_add(&v->active_ns, overlap(host->woke_at, span_began, now));
	count(v, 0);
	if (*(volatile __u32 *)&v->threads) /* somebody has begun between */
		count(v, v->presence);
}

#endif
