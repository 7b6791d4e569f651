// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything that the scheduler's tracepoints say, one record an event, for tests that work out in Python what
 * the monitor must have counted. Knows nothing of workloads, states or classes.
 */
#include "../../../daemon/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

#define RECORDS (1 << 20)

enum kind { WAKING, SWITCH, ENTER, LEAVE };

struct record {
	__u64 ns;
	__u16 kind;
	__u16 core;
	__s32 running;
	__s32 other; /* who is woken; who comes; which interrupt */
	__u32 state; /* SWITCH: 0 still wants to run, 1 sleeps */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RECORDS);
	__type(key, __u32);
	__type(value, struct record);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} written SEC(".maps");

static __always_inline int put(enum kind kind, __s32 running, __s32 other, __u32 state)
{
	__u32 zero = 0, place;
	__u64 *next = bpf_map_lookup_elem(&written, &zero);
	struct record *record;

	if (!next)
		return 0;
	place = __sync_fetch_and_add(next, 1);
	record = bpf_map_lookup_elem(&records, &place);
	if (!record)
		return 0;
	record->ns = bpf_ktime_get_ns();
	record->kind = kind;
	record->core = bpf_get_smp_processor_id();
	record->running = running;
	record->other = other;
	record->state = state;
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	return put(WAKING, (__s32)bpf_get_current_pid_tgid(), task->pid, 0);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool preempt, struct task_struct *former, struct task_struct *next)
{
	return put(SWITCH, former->pid, next->pid, !preempt && former->__state != TASK_RUNNING);
}

#define INTERRUPT(name, number)                                                                    \
	SEC("tp_btf/" #name "_entry")                                                              \
	int name##_enter(void *ctx)                                                                \
	{                                                                                          \
		return put(ENTER, 0, number, 0);                                                   \
	}                                                                                          \
	SEC("tp_btf/" #name "_exit")                                                               \
	int name##_leave(void *ctx)                                                                \
	{                                                                                          \
		return put(LEAVE, 0, number, 0);                                                   \
	}

INTERRUPT(local_timer, 1)
INTERRUPT(irq_handler, 2)
INTERRUPT(softirq, 3)
INTERRUPT(call_function, 4)
INTERRUPT(call_function_single, 5)
INTERRUPT(irq_work, 6)
