/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMs that meet at a CPU, since they wait for it or run there, and what they owe each other. Of a VM whose threads there may run
 * nowhere else its stay at that CPU counts, of others that on the host.
 *
 * What the VM furthest behind is behind lapses as far as it was due to it while it slept: it could have had it. So on a host
 * with time to spare nobody owes anybody anything, whoever uses more.
 *
 * For the rest, if it has rested (it slept, or ran with all its threads, within a second), it has saved up twice what is due at
 * most. That is measured from the one furthest behind of those that have not rested, so that others that rested at
 * the same time save up no more for it; or, if all have, from the one furthest ahead. If it has not rested, the one ahead is
 * forgiven what is more than FORGIVEN times its debt: the other could not have used it.
 */
#ifndef DASEC_SCX_MEET_H
#define DASEC_SCX_MEET_H

#include "scx_queue.h"

#define FORGIVEN 10

struct meeting {
	__u64 least;
	__u64 most;
	__u64 settled_time; /* the least of those that have not rested */
	__u32 settled;	    /* whose that is; 0: all have */
	__u32 behind;	    /* whose is the least; 0: nobody's */
	__u32 ahead;	    /* whose is the most */
};

/* Those that wait for a CPU and may run there. */
struct survey {
	struct meeting met;
	__u64 least;
	__u32 least_vm; /* 0: nobody waits */
	__u32 first_vm; /* in the order of slots */
	__u32 next_vm;	/* after the one looked at last */
};

static bool waits_for_only(const struct cpu *c, __u32 vm)
{
	return (c->own[CRITICAL][word_at(vm)] | c->own[OTHER][word_at(vm)]) & bit_of(vm);
}

static struct stay *stay_here(const struct cpu *c, __s32 cpu, __u32 vm)
{
	bool runs = c->class != NOBODY && c->vm == vm;

	return stay_at(waits_for_only(c, vm) || (runs && c->confined) ? cpu : ANY_CPU, vm);
}

/* Within a turn: a VM that waits has been served by then, so its V says no longer that it rested. */
static bool has_rested(const struct stay *s, __u64 now)
{
	return before(now, s->rested_at + options.turn_ns);
}

static bool has_slept(const struct stay *s, __u64 now)
{
	return before(now, s->woke_at + options.turn_ns);
}

/*
 * How far a VM had come when another woke up, if both woke up within a turn: of what it has used since it woke up itself so much as
 * of that time had passed. What it has moved by was not use.
 */
static __u64 time_when(const struct vm *v, const struct stay *s, const struct stay *woken, __u64 now)
{
	__u64 used = v->time - v->moved - s->woke_with, since = now - woken->woke_at, all = now - s->woke_at;

	if (before(s->woke_at + options.turn_ns, woken->woke_at) || (__s64)used < 0)
		return v->time;
	if (before(all, since))
		return v->time - used;
	return v->time - ((used >> 10) * (since >> 10) / (all >> 10 ? all >> 10 : 1) << 10);
}

static __u64 short_of(const struct vm *v, __u64 time)
{
	return before(v->time, time) ? time - v->time : 0;
}

/* Whether anything has, and so the CPU looks around again: for a slice at least. It is over once it meets one that has not slept. */
part int lapse(__s32 cpu, __u32 low_vm, __u32 high_vm, __u64 now)
{
	struct vm *low = vm_at(low_vm), *high = vm_at(high_vm);
	struct cpu *c = cpu_at(cpu);
	struct stay *of_low, *of_high;
	__u64 gone, then, least, lapsing;

	if (!c)
		return false;
	if (!low)
		return false;
	if (!high)
		return false;
	of_low = stay_here(c, cpu, low_vm);
	if (!of_low)
		return false;
	if (!of_low->lapsing || !has_slept(of_low, now) || !before(low->time, high->time))
		return false;
	of_high = stay_here(c, cpu, high_vm);
	if (!of_high)
		return false;
	then = time_when(high, of_high, of_low, now);
	least = virtual(low, options.slice_ns);
	if (has_slept(of_high, now) && short_of(low, then) < least)
		return false;
	lapsing = __sync_lock_test_and_set(&of_low->lapsing, 0); /* another CPU may do so just now: it lapses once */
	gone = short_of(low, then);
	if (gone > lapsing)
		gone = lapsing;
	if (gone < least)
		gone = 0;
	if (gone)
		move(low, gone);
	if (has_slept(of_high, now))
		__sync_fetch_and_add(&of_low->lapsing, lapsing - gone);
	return gone != 0;
}

static void meet(struct meeting *m, __u32 vm, const struct vm *v, const struct stay *s, __u64 now)
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
	if (has_rested(s, now) || !waits(v))
		return;
	if (!m->settled || before(time, m->settled_time)) {
		m->settled_time = time;
		m->settled = vm;
	}
}

/* Whether the one behind is somewhere else now, so that another may be behind. */
part int bound_claims(__s32 cpu, struct meeting *m, __u64 now)
{
	struct cpu *c = cpu_at(cpu);
	struct vm *low, *high;
	struct stay *s;
	__u64 bound;

	if (!c)
		return 0;
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
	s = stay_here(c, cpu, m->behind);
	if (!s)
		return 0;
	if (!waits(low))
		s->rested_at = now;
	if (lapse(cpu, m->behind, m->settled ? m->settled : m->ahead, now))
		return 1;
	if (has_rested(s, now)) {
		bound = (m->settled ? m->settled_time : m->most) - SAVED_UP * due_time() - virtual(low, options.slice_ns);
		if (!before(low->time, bound))
			return 0;
		move_to(low, bound);
	} else {
		bound = low->time + FORGIVEN * debt_of(high) + virtual(high, options.slice_ns);
		if (!before(bound, high->time))
			return 0;
		move_to(high, bound);
	}
	return 1;
}

static void look_at(const struct cpu *c, __s32 cpu, struct survey *s, __u32 vm, __u64 now)
{
	struct stay *stay = stay_here(c, cpu, vm);
	struct vm *v = vm_at(vm);

	if (!v)
		return;
	if (!stay)
		return;
	if (!s->first_vm)
		s->first_vm = vm;
	if (!s->next_vm && vm > c->looked_at)
		s->next_vm = vm;
	meet(&s->met, vm, v, stay, now);
}

part int look_around(__s32 cpu, struct survey *s, __u32 running, __u64 now)
{
	struct cpu *c = cpu_at(cpu);
	struct stay *stay;
	struct vm *v;
	__u32 word;

	if (!c)
		return 0;
	if (!s)
		return 0;
	__builtin_memset(s, 0, sizeof(*s));
	for (word = zero; word < words_used && word < WORDS && may_go_on(); word++) {
		__u64 own = own_bits(c, CRITICAL, word) | own_bits(c, OTHER, word);
		__u64 any = shared_bits(c, CRITICAL, word) | shared_bits(c, OTHER, word);
		__u64 left = without_kernel(own | any, word);

		while (left && may_go_on()) {
			__u32 vm = word << 6 | lowest(left);

			left &= left - 1;
			if (own & bit_of(vm) || reaches_cpu(vm, cpu))
				look_at(c, cpu, s, vm, now);
		}
	}
	s->least = s->met.least;
	s->least_vm = s->met.behind;
	if (!s->next_vm)
		s->next_vm = s->first_vm;
	if (!s->first_vm || !running)
		return 0;
	v = vm_at(running);
	if (!v)
		return 0;
	stay = stay_here(c, cpu, running);
	if (stay)
		meet(&s->met, running, v, stay, now);
	return 0;
}

/* Of all that wait for this CPU or run on it, the presence; of VMs that may run elsewhere the part of a CPU. */
part __u64 presence_met(__s32 cpu, __u32 running)
{
	struct cpu *c = cpu_at(cpu);
	struct vm *v = vm_at(running);
	__u64 here = zero, anywhere = zero;
	__u32 word;

	if (!c)
		return 0;
	if (v && running && (c->confined || waits_for_only(c, running)))
		here += v->presence;
	else if (v && running)
		anywhere += v->presence;
	for (word = zero; word < words_used && word < WORDS && may_go_on(); word++) {
		__u64 own = c->own[CRITICAL][word] | c->own[OTHER][word];
		__u64 left = without_kernel(own | shared[CRITICAL][word] | shared[OTHER][word], word);

		while (left && may_go_on()) {
			__u32 vm = word << 6 | lowest(left);

			left &= left - 1;
			v = vm_at(vm);
			if (!v || vm == running)
				continue;
			if (own & bit_of(vm))
				here += v->presence;
			else if (reaches_cpu(vm, cpu))
				anywhere += v->presence;
		}
	}
	return here + anywhere / (online_cpus ? online_cpus : 1);
}

/*
 * How far ahead a VM in its share may be at this CPU. Never more than on the host, also if more is due to it here: what others may claim
 * is bound by the host's.
 */
part __u64 debt_here(__s32 cpu, __u32 vm, __u32 running)
{
	struct vm *v = vm_at(vm);
	__u64 due = due_time(), here, presence;

	if (!v)
		return 0;
	if (!is_confined_to(cpu, vm, v))
		return debt_within(due, v);
	presence = presence_met(cpu, running);
	here = options.debt_ns * NEUTRAL_WORTH / (presence ? presence : NEUTRAL_WORTH);
	return debt_within(here < due ? here : due, v);
}

/* What they owe each other, and who is behind then. */
static __noinline int settle(__s32 cpu, struct survey *s, __u32 running, __u64 now)
{
	__u32 times;

	if (!s)
		return 0;
	for (times = zero; times < MAX_VMS && may_go_on(); times++) {
		look_around(cpu, s, running, now);
		if (!s->least_vm || !bound_claims(cpu, &s->met, now))
			break;
	}
	return 0;
}

#endif
