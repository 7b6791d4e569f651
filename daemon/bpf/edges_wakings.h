/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wake-ups, and the edges that they are. A wake-up that a followed thread makes of anybody outside its workload, outside
 * interrupts, is outward: counted for the waker, whoever the wakee is.
 *
 * Of the two programs one is loaded: waking_edges counts wake-ups and edges; waking_full, beside whatever sees threads
 * get and lose their CPUs, chains and blame, too.
 */
#ifndef DASEC_EDGES_WAKINGS_H
#define DASEC_EDGES_WAKINGS_H

#include "edges_interrupts.h"
#include "edges_times.h"

static __always_inline void count_outward(const struct followed *waker)
{
	struct activity *activity = activity_of(waker);

	if (activity)
		activity->outward++;
}

/* Nobody follows who is woken. Most wake-ups on a host are nobody's of ours: one look at the waker tells. */
static __always_inline int wakes_stranger(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct followed *waker;
	struct core *core;

	if (!task->bpf_storage)
		return 0;
	core = this_core();
	if (!core || core->context || in_other_interrupt(core))
		return 0;
	waker = follow_of_running(core, task);
	if (waker)
		count_outward(waker);
	return 0;
}

static __always_inline void count_waking(struct activity *wakee, enum source source)
{
	if (source == SIBLING)
		wakee->sibling++;
	else if (source == EXTERNAL)
		wakee->external++;
	else
		wakee->timer++;
}

static __always_inline void add_far(__u32 waker, __u32 wakee, __u64 blame_ns)
{
	struct edge_key key = { .waker = waker, .wakee = wakee };
	struct edge *edge = bpf_map_lookup_elem(&edges, &key);
	struct edge first = { .wakeups = 1, .blame_ns = blame_ns };
	__u32 zero = 0;
	struct totals *total;

	if (edge) {
		edge->wakeups++;
		edge->blame_ns += blame_ns;
		return;
	}
	total = bpf_map_lookup_elem(&totals, &zero);
	if (!total)
		return;
	if (bpf_map_update_elem(&edges, &key, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&total->lost, 1);
	else
		__sync_fetch_and_add(&total->far, 1);
}

static __always_inline void add_edge(__u32 waker, struct activity *wakee, __u64 blame_ns)
{
	int at;

#pragma unroll
	for (at = 0; at < NEAR; at++) {
		if (!wakee->wakers[at])
			wakee->wakers[at] = waker;
		if (wakee->wakers[at] == waker) {
			wakee->near[at].wakeups++;
			wakee->near[at].blame_ns += blame_ns;
			return;
		}
	}
	add_far(waker, wakee->serial, blame_ns);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking_edges, struct task_struct *task)
{
	struct followed *wakee = follow_of(task), *waker = 0;
	struct activity *activity;
	enum source source;

	if (!wakee)
		return wakes_stranger();
	source = source_of(wakee, &waker);
	activity = activity_of(wakee);
	if (!activity)
		return 0;
	count_waking(activity, source);
	if (waker && waker->workload != wakee->workload)
		count_outward(waker);
	if (source == SIBLING && waker)
		add_edge(waker->serial, activity, 0);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking_full, struct task_struct *task)
{
	struct followed *wakee = follow_of(task), *waker = 0;
	__u64 now_ns, slept_since_ns = 0, blame_ns = 0;
	struct activity *activity, *by;
	enum source source;

	if (!wakee)
		return wakes_stranger();
	activity = activity_of(wakee);
	if (!activity)
		return 0;
	source = source_of(wakee, &waker);
	count_waking(activity, source);
	if (waker && waker->workload != wakee->workload)
		count_outward(waker);
	if (!is_in_sight(task)) {
		/* Whoever gives it its CPU tells nobody. */
	} else if (activity->state == UNKNOWN || activity->state == ASLEEP) {
		now_ns = bpf_ktime_get_ns();
		if (activity->state == ASLEEP)
			slept_since_ns = activity->since_ns;
		activity->sleep_ns += now_ns - activity->since_ns;
		activity->since_ns = now_ns;
		activity->state = READY;
		end_sleep(activity, source);
	} else {
		activity->early = source + 1;
	}
	if (source != SIBLING || !waker)
		return 0;
	by = activity_of(waker);
	if (by) {
		if (slept_since_ns)
			blame_ns = ready_since(by, waker->slot, slept_since_ns);
		by->blame_ns += blame_ns;
		if (!by->in_chain)
			join_chain(by);
	}
	add_edge(waker->serial, activity, blame_ns);
	return 0;
}

#endif
