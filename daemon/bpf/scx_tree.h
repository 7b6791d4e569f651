/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What weights are worth. A cgroup's weight counts among the groups beside it, below the same group, and so does that one's: a VM is
 * due its part of its group's part, of all that run or wait. That is worked out every 10 ms, and each VM's weight is given a worth
 * that counts beside all VMs of the host.
 *
 * A group's part is divided by the weight below it that runs or waits, on average of the time in which any does: then the group has
 * its part, however many wake up below it now and then, and those below it share as their weights say.
 *
 * Only how worths compare has a meaning, so the group where weight is worth least has its weights as they are: where all VMs are of
 * one group, what others do does not change them. If a worth changes nevertheless, what its VM is ahead of the one furthest behind
 * stays as much CPU time as it was.
 *
 * Threads of a group that has others below it, too (of a threaded domain), have as much as these.
 */
#ifndef DASEC_SCX_TREE_H
#define DASEC_SCX_TREE_H

#include "scx_share.h"

#define SPAN_NS 10000000ULL
#define SPANS 8 /* of which an average is, so 80 ms or so: the kernel's own halves what is older than 32 ms */
#define LEAP 2 /* times the average: what was asleep has begun at once, and the average comes too late */
#define BUSY 1024 /* all of a span */
#define ALL_DUE (1ULL << 26) /* to a group at the top, for each of its weight */
#define MOST_DUE (10000 * ALL_DUE)
#define MOST_WORTH (1U << 30)

static __u64 least_due = ALL_DUE; /* to a weight of one, where it is worth least */

static bool is_slot(__u32 slot)
{
	return slot < words_used * 64 && slot < MAX_VMS;
}

static struct vm *group_above(const struct vm *v)
{
	return v->above ? vm_at(v->above) : NULL;
}

/* Whether one of its threads has run or waited within a turn. */
static bool is_about(__u32 slot, const struct vm *v, __u64 now)
{
	struct stay *host = stay_at(ANY_CPU, slot);

	return v->threads || (host && before(now, host->slept_at + options.turn_ns));
}

/* What is due to it of the host from now on, by what the last spans had. */
static void set_due(struct vm *v)
{
	struct vm *above = group_above(v);
	__u64 usual, last;

	if (!above) {
		v->due = v->weight * ALL_DUE;
		return;
	}
	usual = above->usual_weight;
	last = above->busy_below ? above->weight_below * BUSY / above->busy_below : 0;
	v->due = above->due * v->weight * BUSY / (last > LEAP * usual ? last : usual);
	if (v->due > MOST_DUE)
		v->due = MOST_DUE;
}

/* A VM that is only about now and then takes no more of what others may be ahead by than its weight says, however much that is worth. */
static void set_worth(struct vm *v)
{
	__u64 worth = (v->due * WORTH + least_due / 2) / least_due, usual;

	v->worth = !worth ? 1 : worth < MOST_WORTH ? worth : MOST_WORTH;
	usual = (__u64)v->worth * v->usually_busy / BUSY;
	if (usual < v->weight * WORTH)
		usual = v->weight * WORTH;
	v->presence = usual < v->worth ? usual : v->worth;
}

static __u32 both_busy(__u32 one, __u32 other)
{
	return BUSY - (BUSY - one) * (BUSY - other) / BUSY;
}

/* How much of the span before now each ran or waited. */
part int end_span(__u32 first, __u64 length, __u64 now)
{
	__u32 slot;

	for (slot = first + zero; is_slot(slot) && may_go_on(); slot++) {
		struct stay *host = stay_at(ANY_CPU, slot);
		struct vm *v = vm_at(slot);
		__u64 active;

		if (!v)
			continue;
		if (!host)
			continue;
		active = __sync_lock_test_and_set(&v->active_ns, 0);
		if (v->threads)
			active += overlap(host->woke_at, now - length, now);
		v->busy = active < length ? active / (length / BUSY) : BUSY;
		v->usually_busy = (v->usually_busy * (SPANS - 1) + v->busy) / SPANS;
		v->weight_below = v->busy_below = 0;
	}
	return 0;
}

/* What those at this depth weigh, for the groups above them; when they are there as if they did not know of each other. */
part int add_to_above(__u32 level)
{
	__u32 slot;

	for (slot = zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot), *above;
		__u32 busy;

		if (!v)
			continue;
		if (!v->weight || v->level != level)
			continue;
		above = group_above(v);
		if (!above)
			continue;
		busy = both_busy(v->busy, v->busy_below);
		above->weight_below += (__u64)v->weight * busy;
		above->busy_below = both_busy(above->busy_below, busy);
	}
	return 0;
}

/* For those at this depth; the next depth goes by what is due to them, and by the average of what they have below. */
part int set_dues(__u32 level)
{
	__u32 slot;

	for (slot = zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot);
		__u64 older;

		if (!v)
			continue;
		if (!v->weight || v->level != level)
			continue;
		older = v->usual_weight * v->busy_below / BUSY;
		v->usual_weight += v->weight_below / SPANS - older / SPANS;
		set_due(v);
	}
	return 0;
}

/* Also of all that run or wait the least V. */
part __u64 set_least_due(__u64 now)
{
	__u64 least = zero, time = zero;
	__u32 slot;

	for (slot = zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot);
		__u64 of_one;

		if (!v)
			continue;
		if (!v->weight || v->level != options.vm_level || !is_about(slot, v, now))
			continue;
		of_one = v->due / v->weight;
		if (!least || of_one < least)
			least = of_one;
		if (v->threads && (!time || before(v->time, time)))
			time = v->time;
	}
	if (least)
		least_due = least;
	return time;
}

#define LONG (1ULL << 33) /* times a worth is more than 64 bits hold */

static __u64 as_long(__u64 lead, __u32 was, __u32 is)
{
	return lead < LONG ? lead * was / is : lead / is * was;
}

static void keep_lead(struct vm *v, __u64 least, __u32 was)
{
	__u64 lead = v->time - least, lag = least - v->time;

	if (before(least, v->time))
		move(v, as_long(lead, was, v->worth) - lead);
	else
		move(v, lag - as_long(lag, was, v->worth));
}

/* Also what is counted as active is set right, if it has begun or ended meanwhile. */
part int weigh(__u32 slot, __u64 least, __u64 now)
{
	struct vm *v = vm_at(slot);
	__u32 was, present;

	if (!v)
		return 0;
	if (v->weight) {
		was = v->worth;
		set_worth(v);
		if (least && v->worth != was && is_about(slot, v, now))
			keep_lead(v, least, was);
	}
	present = v->threads ? v->presence : 0;
	if (v->counted != present)
		count(v, present);
	return 0;
}

/* One CPU does, for all. */
static __noinline int weigh_anew(__u64 now)
{
	__u64 last = span_began, least;
	__u32 level, slot;

	if (before(now, last + SPAN_NS) || !__sync_bool_compare_and_swap(&span_began, last, now))
		return 0;
	end_span(REST, last ? now - last : SPAN_NS, now);
	for (level = options.vm_level; level > 1 && may_go_on(); level--)
		add_to_above(level);
	for (level = 1; level <= options.vm_level && may_go_on(); level++)
		set_dues(level);
	least = set_least_due(now);
	for (slot = REST + zero; is_slot(slot) && may_go_on(); slot++)
		weigh(slot, least, now);
	return 0;
}

static __u32 slot_at(struct cgroup *cgrp, int level)
{
	struct cgroup *group = bpf_cgroup_ancestor(cgrp, level);
	__u32 *slot;
	__u64 id;

	if (!group)
		return 0;
	id = group->kn->id;
	bpf_cgroup_release(group);
	slot = bpf_map_lookup_elem(&vm_of_id, &id);
	return slot ? *slot : 0;
}

/* The slot of the VM that this cgroup is or belongs to; above the depth of VMs each is one for its own threads. */
static __noinline __u32 slot_of(__u64 id)
{
	struct cgroup *cgrp = bpf_cgroup_from_id(id);
	__u32 slot;

	if (!cgrp)
		return REST;
	slot = slot_at(cgrp, cgrp->level < (int)options.vm_level ? cgrp->level : (int)options.vm_level);
	bpf_cgroup_release(cgrp);
	return slot ? slot : REST;
}

/* A new group in its place, with this weight. Until somebody is seen below it the first one there is all that is. */
static void place(struct vm *v, __u32 level, __u32 above_slot)
{
	struct vm *above;

	v->level = level;
	v->above = above_slot;
	v->busy = v->usually_busy = v->busy_below = 0;
	v->weight_below = v->usual_weight = 0;
	above = group_above(v);
	if (above && !above->usual_weight)
		above->usual_weight = (__u64)v->weight * BUSY;
	set_due(v);
	set_worth(v);
}

#endif
