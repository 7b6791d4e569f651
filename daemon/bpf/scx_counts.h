/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the daemon counts of the threads that it follows, counted by the scheduler: it sees them get and lose their CPUs anyhow, with
 * their storage at hand. Who wakes them is seen where the kernel says so, as under any scheduler: whoever is woken on his way to
 * sleep never left the run queue, so the scheduler does not hear of it.
 */
#ifndef DASEC_SCX_COUNTS_H
#define DASEC_SCX_COUNTS_H

#include "edges_follow.h"
#include "edges_switches.h"
#include "edges_wakings.h"
#include "scx_critical.h"

/* Written by the loader: somebody wants to know at present. Not in partial mode, where others' threads are followed, too. */
volatile __u32 counting SEC(".data.counting") = 0;

static struct followed *follow_of(struct task_struct *task)
{
	struct thread *t = thread_of(task);

	return t && t->followed.serial ? &t->followed : NULL;
}

static bool begin_to_follow(struct task_struct *task, struct followed *first)
{
	struct thread *t = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return false;
	t->followed.slot = first->slot;
	t->followed.workload = first->workload;
	barrier(); /* with its serial number it is followed */
	t->followed.serial = first->serial;
	return true;
}

static void end_to_follow(struct task_struct *task)
{
	struct thread *t = thread_of(task);

	if (t)
		t->followed.serial = 0;
}

/* The scheduler's own kicks are interrupts, one at many a wake-up, so programs around each would cost instructions every time. */
static bool in_other_interrupt(const struct core *core)
{
	return in_interrupt();
}

/* Another class has it: for good, or as long as a real-time thread waits for a lock that it holds. */
static bool is_in_sight(const struct task_struct *task)
{
	return scx_of(task)->prio >= MAX_RT_PRIO;
}

static bool is_counted(const struct thread *t)
{
	return options.counts_switches && counting && t->followed.serial;
}

/* It goes on, if the kernel has only taken it out and put it back to change something about it. */
static void count_dispatch(const struct thread *t, __u64 now)
{
	const struct activity *activity = is_counted(t) ? activity_of(&t->followed) : NULL;

	if (activity && activity->state != RUNNING)
		dispatch(&t->followed, now);
}

static void count_preemption(const struct thread *t)
{
	if (is_counted(t))
		displace(&t->followed, false, bpf_ktime_get_ns());
}

static void count_departure(const struct thread *t)
{
	struct activity *activity = is_counted(t) ? activity_of(&t->followed) : NULL;

	if (activity)
		lose_sight(activity, bpf_ktime_get_ns());
}

static void count_sleep(const struct thread *t, __u64 now)
{
	if (is_counted(t))
		displace(&t->followed, true, now);
}

#endif
