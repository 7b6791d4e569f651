/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What weights are worth. A cgroup's weight counts among the groups beside it only, below the same group, and so does that
 * one's. So a VM is due its part of its group's part, of all that run or wait. Every 10 ms this is worked out from who does, and
 * each VM's weight is given a worth that counts beside all VMs of the host.
 *
 * Only how worths of unlike groups compare has a meaning, so the group where weight is worth least has its weights as they are:
 * where all VMs are of one group, nothing that others do changes their worth.
 *
 * A group's weight is divided by what those below it have that run or wait, on average: a service that wakes up now and then takes
 * little from those beside it. But never among less than the heaviest that has run lately, or the part of one alone would be more
 * than the whole.
 */
#ifndef DASEC_SCX_TREE_H
#define DASEC_SCX_TREE_H

#include "scx_share.h"

#define SPAN_NS 10000000ULL
#define SPANS 8 /* of which an average is, so 80 ms or so: the kernel's own halves what is older than 32 ms */
#define BUSY 64 /* all of a span */
#define WHOLE (1ULL << 30) /* the host's part, for each of weight */
#define MOST_WORTH (1U << 30)

static __u64 least_due = WHOLE; /* of a weight of one, where it is worth least */

static bool is_slot(__u32 slot)
{
	return slot < words_used * 64 && slot < MAX_VMS;
}

/* Whether one of its threads has run or waited within a turn. */
static bool is_about(__u32 slot, const struct vm *v, __u64 now)
{
	struct stay *host = stay_at(ANY_CPU, slot);

	return v->threads || (host && before(now, host->slept_at + options.turn_ns));
}

static void set_due(struct vm *v)
{
	struct vm *above = v->above ? vm_at(v->above) : NULL;
	__u64 all = (__u64)v->weight * BUSY;

	if (!above) {
		v->due = v->weight * WHOLE;
		return;
	}
	if (all < above->usual)
		all = above->usual;
	if (all < (__u64)above->heaviest * BUSY)
		all = (__u64)above->heaviest * BUSY;
	v->due = above->due * v->weight * BUSY / (all ? all : 1);
}

static void set_worth(struct vm *v)
{
	__u64 worth = (v->due * WORTH + least_due / 2) / least_due;

	v->worth = !worth ? 1 : worth < MOST_WORTH ? worth : MOST_WORTH;
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
			active += before(host->woke_at, now - length) ? length : now - host->woke_at;
		v->busy = active < length ? active * BUSY / length : BUSY;
		v->below = v->heaviest = 0;
	}
	return 0;
}

/* What those at this depth weigh, for the groups above them. */
part int add_to_above(__u32 level, __u64 now)
{
	__u32 slot;

	for (slot = zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot), *above;

		if (!v)
			continue;
		if (!v->weight || v->level != level || !v->above)
			continue;
		above = vm_at(v->above);
		if (!above)
			continue;
		above->below += v->weight * v->busy;
		above->busy = above->busy + v->busy < BUSY ? above->busy + v->busy : BUSY;
		if (above->heaviest < v->weight && (v->heaviest || is_about(slot, v, now)))
			above->heaviest = v->weight;
	}
	return 0;
}

/* The parts of those at this depth, and the averages of what is below them, which the next depth goes by. */
part int set_dues(__u32 level)
{
	__u32 slot;

	for (slot = zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot);

		if (!v)
			continue;
		if (!v->weight || v->level != level)
			continue;
		v->usual = (v->usual * (SPANS - 1) + v->below) / SPANS;
		set_due(v);
	}
	return 0;
}

/* Among VMs only: threads above their depth are few, and none of the weights there is one of many alike. */
part int set_least_due(__u64 now)
{
	__u64 least = zero;
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
	}
	if (least)
		least_due = least;
	return 0;
}

/* Also what counts as active is set right, if a VM has begun or ended meanwhile. */
part int set_worths(__u32 first)
{
	__u32 slot;

	for (slot = first + zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot);
		__u32 counted;

		if (!v)
			continue;
		if (!v->weight)
			continue;
		set_worth(v);
		counted = v->threads ? v->worth : 0;
		if (v->counted != counted)
			count(v, counted);
	}
	return 0;
}

/* One CPU does, for all. */
static __noinline int weigh_anew(__u64 now)
{
	__u64 last = span_began;
	__u32 level;

	if (before(now, last + SPAN_NS) || !__sync_bool_compare_and_swap(&span_began, last, now))
		return 0;
	end_span(REST, now - last, now);
	for (level = options.vm_level; level > 1 && may_go_on(); level--)
		add_to_above(level, now);
	for (level = 1; level <= options.vm_level && may_go_on(); level++)
		set_dues(level);
	set_least_due(now);
	return set_worths(REST);
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

/* A new group, in its place. */
static void place(struct vm *v, struct cgroup *cgrp)
{
	v->level = cgrp->level;
	v->above = v->level > 1 ? slot_at(cgrp, cgrp->level - 1) : 0;
	v->below = v->heaviest = v->usual = 0;
	set_due(v);
	set_worth(v);
}

#endif
