/* SPDX-License-Identifier: GPL-2.0-only */
/* What user space asks for: follow a thread, follow it no longer, begin anew. */
#ifndef DASEC_EDGES_FOLLOW_H
#define DASEC_EDGES_FOLLOW_H

#include "edges_interrupts.h"
#include "edges_times.h"

struct order {
	__u32 slot;
	__u32 tid;
	__u64 start_ticks;
	__u32 serial;
	__u32 workload;
};

static __always_inline struct task_struct *find(const struct order *order)
{
	struct task_struct *task = bpf_task_from_pid(order->tid);

	if (task && task->start_boottime / NS_PER_CLOCK_TICK != order->start_ticks) {
		bpf_task_release(task);
		return 0;
	}
	return task;
}

/*
 * What the thread is doing, unless it is just changing. One in a sleeping state may still be queued: preempted on its
 * way to sleep, or with its dequeue delayed. If a wake-up is the next that is seen of it, it has slept, but nobody
 * is blamed for that sleep.
 */
static __always_inline enum state present(const struct task_struct *task)
{
	__u32 state = task->__state;

	if (task->on_cpu)
		return state == TASK_RUNNING ? RUNNING : UNKNOWN;
	if (state == TASK_RUNNING)
		return READY;
	return state == TASK_WAKING || state == TASK_NEW || task->on_rq ? UNKNOWN : ASLEEP;
}

/* Follow a thread from now on. 0: it is followed. */
SEC("syscall")
int follow(struct order *order)
{
	struct followed first = { .slot = order->slot, .serial = order->serial, .workload = order->workload };
	__u32 slot = order->slot;
	struct activity *activity = bpf_map_lookup_elem(&activities, &slot);
	struct past *past = bpf_map_lookup_elem(&pasts, &slot);
	struct task_struct *task;
	bool followed;

	if (!activity)
		return 1;
	task = find(order);
	if (!task)
		return 2;
	__builtin_memset(activity, 0, sizeof(*activity));
	if (past) /* waking_edges needs none */
		past->count = 0;
	activity->serial = order->serial;
	activity->since_ns = bpf_ktime_get_ns();
	followed = begin_to_follow(task, &first);
	/* From here on its events are seen; the first of them knows better than we do. */
	__sync_val_compare_and_swap(&activity->state, UNKNOWN, present(task));
	bpf_task_release(task);
	return followed ? 0 : 3;
}

struct renewal {
	__u32 slots; /* how many to go through */
	__u32 unused;
};

static long renew_slot(__u32 slot, void *ctx)
{
	struct activity *activity = bpf_map_lookup_elem(&activities, &slot);

	if (!activity)
		return 1;
	lose_sight(activity, bpf_ktime_get_ns());
	/*
	 * Not `early`: a thread that was woken on its way to sleep has not slept, whatever else is not known of it. Nor
	 * `in_chain`: until its next wake-up tells, its time is what it was of late.
	 */
	return 0;
}

#define MOST_CORES 8192 /* CONFIG_NR_CPUS at most */

static long renew_core(__u32 number, void *ctx)
{
	__u32 zero = 0;
	struct core *core = bpf_map_lookup_percpu_elem(&cores, &zero, number);

	if (!core)
		return 1;
	core->pid = 0;
	return 0;
}

/* When programs have been detached, and when they are attached again. What was counted stays. */
SEC("syscall")
int renew(struct renewal *asked)
{
	bpf_loop(asked->slots, renew_slot, 0, 0);
	bpf_loop(MOST_CORES, renew_core, 0, 0);
	return 0;
}

/* Follow it no longer. */
SEC("syscall")
int forget(struct order *order)
{
	struct task_struct *task = find(order);

	if (!task)
		return 2;
	end_to_follow(task);
	bpf_task_release(task);
	return 0;
}

#endif
