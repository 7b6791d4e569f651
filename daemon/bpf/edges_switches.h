/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads get and lose their CPUs, by whatever scheduler. */
#ifndef DASEC_EDGES_SWITCHES_H
#define DASEC_EDGES_SWITCHES_H

#include "edges_interrupts.h"
#include "edges_times.h"

SEC("tp_btf/sched_switch")
int BPF_PROG(switching, bool preempt, struct task_struct *former, struct task_struct *next)
{
	struct followed *leaves, *comes;
	struct core *core = this_core();
	__u64 now_ns = 0;

	if (!core)
		return 0;
	leaves = follow_of_running(core, former);
	if (leaves) {
		now_ns = bpf_ktime_get_ns();
		/* Its own state, not the tracepoint's: 6.12 shows one that a signal has undone. */
		displace(leaves, !preempt && former->__state != TASK_RUNNING, now_ns);
	}
	core->pid = 0;
	comes = follow_of(next);
	if (comes) {
		core->followed = *comes;
		core->pid = next->pid;
		dispatch(comes, now_ns ? now_ns : bpf_ktime_get_ns());
	}
	return 0;
}

#endif
