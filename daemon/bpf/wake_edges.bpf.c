// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who wakes whom, and what it costs whoever waits: the threads of managed workloads at each wake-up and each context
 * switch, under whatever scheduler. Ours counts the same by itself (scx_counts.h).
 */
#include "edges_follow.h"
#include "edges_switches.h"
#include "edges_wakings.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct followed);
} follows SEC(".maps");

/* Most threads have no storage at all: looking first saves them the call. */
static __always_inline struct followed *follow_of(struct task_struct *task)
{
	if (!task->bpf_storage)
		return 0;
	return bpf_task_storage_get(&follows, task, 0, 0);
}

static __always_inline bool begin_to_follow(struct task_struct *task, struct followed *first)
{
	struct followed *followed = bpf_task_storage_get(&follows, task, first, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (followed && followed->serial != first->serial)
		*followed = *first;
	return followed;
}

static __always_inline void end_to_follow(struct task_struct *task)
{
	bpf_task_storage_delete(&follows, task);
}

static __always_inline bool is_in_sight(const struct task_struct *task)
{
	return 1;
}

BRACKET(irq_handler, IN_INTERRUPT)
BRACKET(call_function, IN_INTERRUPT)
BRACKET(call_function_single, IN_INTERRUPT)
BRACKET(irq_work, IN_INTERRUPT)

static __always_inline bool in_other_interrupt(const struct core *core)
{
	return core->context & IN_INTERRUPT;
}
