/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What weights are worth. A cgroup's weight counts among the groups beside it, below the same group, and so does that one's: a VM is
 * due its part of its group's part, of all that run or wait. That is worked out every 10 ms, and each VM's weight is given a worth
 * that counts beside all VMs of the host.
 *
 * A group's part is divided by the weight below it that runs or waits, on average of the time in which any does: so those below it
 * share as their weights say, and however many wake up there now and then, they take little from one that computes.
 *
 * Only how worths compare has a meaning. Below the main group, whose VMs have used most CPU time of late, weights are worth what they
 * are: where all VMs are of one group, what is done in others does not change them. Leads in V are not scaled when worths change,
 * so these should not.
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

#define LASTING 1024 /* spans, of which a group's use of CPU time is remembered: ten seconds or so */
#define FAR_MORE 2 /* times the use of the main group: so worths are not moved back and forth */

static __u32 main_group;
static __u64 due_to_one = ALL_DUE; /* of weight, below the main group */
static __u32 weighing;

static bool is_slot(__u32 slot)
{
	return slot < words_used * 64 && slot < MAX_VMS;
}

static struct vm *group_above(const struct vm *v)
{
	return v->above ? vm_at(v->above) : NULL;
}

/* By which what is due to a group is divided, from now on: by what the last spans had below it. */
static __u64 weight_among(const struct vm *above)
{
	__u64 last = above->busy_below ? above->weight_below * BUSY / above->busy_below : 0;

	return last > LEAP * above->usual_weight ? last : above->usual_weight;
}

static void set_due(struct vm *v)
{
	struct vm *above = group_above(v);

	v->due = above ? above->due * v->weight * BUSY / weight_among(above) : v->weight * ALL_DUE;
	if (v->due > MOST_DUE)
		v->due = MOST_DUE;
}

/* A VM that is only about now and then takes no more of what others may be ahead by than its weight says, however much that is worth. */
static void set_worth(struct vm *v)
{
	__u64 worth = (v->due * WORTH + due_to_one / 2) / due_to_one, presence;

	v->worth = !worth ? 1 : worth < MOST_WORTH ? worth : MOST_WORTH;
	presence = (__u64)v->worth * v->usually_busy / BUSY;
	if (presence < v->weight * WORTH)
		presence = v->weight * WORTH;
	v->presence = presence < v->worth ? presence : v->worth;
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
		v->used_below -= v->used_below / LASTING;
	}
	return 0;
}

/*
 * What those at this depth weigh and use, for the groups above them. When each was busy within the span is not known: taken as
 * independent of when others were.
 */
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
		if (level == options.vm_level)
			above->used_below += v->used_ns - v->seen_ns;
		v->seen_ns = v->used_ns;
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

part int set_main_group(__u32 first)
{
	struct vm *now = vm_at(main_group);
	__u64 among;
	__u64 most = now && now->weight ? FAR_MORE * now->used_below : 0;
	__u32 slot;

	for (slot = first + zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot);

		if (!v)
			continue;
		if (!v->weight || v->used_below <= most)
			continue;
		most = v->used_below;
		main_group = slot;
	}
	now = vm_at(main_group);
	if (!now || !main_group)
		return 0;
	among = weight_among(now);
	due_to_one = among ? now->due * BUSY / among : ALL_DUE; /* none: its slot has another group now */
	if (!due_to_one)
		due_to_one = 1;
	return 0;
}

/* Also what is counted as active is set right, if a VM has begun or ended meanwhile. */
part int set_worths(__u32 first)
{
	__u64 late = zero;
	__u32 slot;

	for (slot = first + zero; is_slot(slot) && may_go_on(); slot++) {
		struct vm *v = vm_at(slot);
		__u32 present;

		if (!v)
			continue;
		if (v->weight)
			set_worth(v);
		if (v->weight && (v->threads || v->usually_busy))
			late += v->presence;
		present = v->threads ? v->presence : 0;
		if (v->counted != present)
			count(v, present);
	}
	late_presence = late;
	return 0;
}

/* One CPU does, for all. */
static __noinline int weigh_anew(__u64 now)
{
	__u64 last = span_began;
	__u32 level;

	if (before(now, last + SPAN_NS) || __sync_lock_test_and_set(&weighing, 1))
		return 0;
	span_began = now;
	end_span(REST, last ? now - last : SPAN_NS, now);
	for (level = options.vm_level; level > 1 && may_go_on(); level--)
		add_to_above(level);
	for (level = 1; level <= options.vm_level && may_go_on(); level++)
		set_dues(level);
	set_main_group(REST);
	set_worths(REST);
	weighing = 0;
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
	v->used_below = v->seen_ns = 0;
	above = group_above(v);
	if (above && !above->usual_weight)
		above->usual_weight = (__u64)v->weight * BUSY;
	set_due(v);
	set_worth(v);
}

#endif
