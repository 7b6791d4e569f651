/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who makes a wake-up: in interrupt context the timer (local timer interrupt, timer softirqs) or somebody external (all
 * other interrupts), whoever happens to be interrupted; otherwise a sibling if the waker is followed and of the same
 * workload, else somebody external. The kernel has no helper for "in interrupt", so programs at the entries and exits
 * keep a word per CPU.
 */
#ifndef DASEC_EDGES_INTERRUPTS_H
#define DASEC_EDGES_INTERRUPTS_H

#include "edges_state.h"

#define IN_TIMER 1U
#define IN_TIMER_SOFTIRQ 2U
#define IN_SOFTIRQ 4U
#define IN_INTERRUPT 8U

/* Of one core: what interrupts it now, and whom `switching` saw it dispatch. */
struct core {
	__u32 context;
	__s32 pid;
	struct followed followed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct core);
} cores SEC(".maps");

/* By whoever includes this: in one that is not the local timer's, or in that, too. */
static bool in_other_interrupt(const struct core *core);

static __always_inline struct core *this_core(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cores, &zero);
}

static __always_inline int enter(__u32 bit)
{
	struct core *core = this_core();

	if (core)
		core->context |= bit;
	return 0;
}

static __always_inline int leave(__u32 bit)
{
	struct core *core = this_core();

	if (core)
		core->context &= ~bit;
	return 0;
}

#define BRACKET(name, bit)                                                                         \
	SEC("tp_btf/" #name "_entry")                                                              \
	int name##_begins(void *ctx)                                                               \
	{                                                                                          \
		return enter(bit);                                                                 \
	}                                                                                          \
	SEC("tp_btf/" #name "_exit")                                                               \
	int name##_ends(void *ctx)                                                                 \
	{                                                                                          \
		return leave(bit);                                                                 \
	}

BRACKET(local_timer, IN_TIMER)

/* include/linux/interrupt.h */
#define TIMER_SOFTIRQ 1
#define HRTIMER_SOFTIRQ 8

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_begins, unsigned int number)
{
	return enter(number == TIMER_SOFTIRQ || number == HRTIMER_SOFTIRQ ? IN_TIMER_SOFTIRQ : IN_SOFTIRQ);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_ends, unsigned int number)
{
	return leave(IN_TIMER_SOFTIRQ | IN_SOFTIRQ);
}

/*
 * Who runs on this core: from the core's own note if it still holds, which saves a look-up. No note is pid 0, and
 * so is the idle task.
 */
static __always_inline struct followed *follow_of_running(struct core *core, struct task_struct *task)
{
	struct activity *activity;

	if (core->pid && core->pid == task->pid) {
		activity = activity_of(&core->followed);
		if (activity && activity->serial == core->followed.serial)
			return &core->followed;
	}
	return follow_of(task);
}

/* Sets *waker if a followed thread makes this wake-up: a sibling, if that is the source. */
static __always_inline enum source source_of(const struct followed *wakee, struct followed **waker)
{
	struct core *core = this_core();

	if (!core)
		return EXTERNAL;
	if (core->context & IN_TIMER)
		return TIMER;
	if (in_other_interrupt(core)) /* a softirq may be what it interrupted */
		return EXTERNAL;
	if (core->context)
		return core->context & IN_TIMER_SOFTIRQ ? TIMER : EXTERNAL;
	*waker = follow_of_running(core, bpf_get_current_task_btf());
	if (*waker && (*waker)->workload == wakee->workload && (*waker)->serial != wakee->serial)
		return SIBLING;
	return EXTERNAL;
}

#endif
