// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counters of all managed threads in one system call.
 *
 * User space seats each thread once (`seat`): the program looks the thread up, checks its start time and
 * keeps a reference to it, so a thread id that is given away again is never mistaken for its former owner.
 * Each period user space runs `collect`. It goes through the seats and puts one row into `rows` for every
 * thread that ran or waited since the last time, or is awake, or has ended, or whose knobs somebody has
 * written. A sleeper costs the kernel a comparison and user space nothing.
 *
 * Everything read here is read through typed pointers; no helper is used that lockdown forbids.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#define SEATS 16384

/* A running thread goes on running and a queued one goes on waiting after the numbers were taken. */
enum state { SLEEPING = 0, QUEUED = 1, RUNNING = 2, ENDED = 3 };

struct row {
	__u32 seat;
	__u8 state;
	__u8 policy;
	__u16 core;
	__u64 on_cpu_ns;
	__u64 ready_ns;
	__u64 dispatches;
	__u64 voluntary_switches;
	__u64 involuntary_switches;
	__u64 knobs; /* another number when policy, nice, slice, mask or cpu group are others */
};

/* clang 14 forgets the mark of a pointer to a struct, but not of one to its typedef. */
typedef struct task_struct task_reference;

struct seat {
	task_reference __kptr *task;
	__u64 used_ns; /* on CPU and ready, when the thread was last put into a row */
	__u64 state;
	__u64 knobs;
};

struct seating {
	__u32 seat;
	__u32 tid; /* 0: leave the seat empty */
	__u64 start_ticks;
};

struct collecting {
	__u32 seats; /* how many to go through */
	__u32 rows;  /* how many rows came out */
	__u32 all;   /* sleepers, too */
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEATS);
	__type(key, __u32);
	__type(value, struct seat);
} seats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SEATS);
	__type(key, __u32);
	__type(value, struct row);
} rows SEC(".maps");

enum { SEATED = 0, NO_SUCH_SEAT = 1, NO_SUCH_THREAD = 2, ANOTHER_THREAD = 3 };

SEC("syscall")
int seat(struct seating *wanted)
{
	struct task_struct *task = 0, *former;
	__u32 at = wanted->seat;
	struct seat *seat = bpf_map_lookup_elem(&seats, &at);

	if (!seat)
		return NO_SUCH_SEAT;
	if (wanted->tid) {
		task = bpf_task_from_pid(wanted->tid);
		if (!task)
			return NO_SUCH_THREAD;
		if (task->start_boottime / NS_PER_CLOCK_TICK != wanted->start_ticks) {
			bpf_task_release(task);
			return ANOTHER_THREAD;
		}
	}
	seat->used_ns = ~0ULL;
	former = bpf_kptr_xchg(&seat->task, task);
	if (former)
		bpf_task_release(former);
	return SEATED;
}

static __always_inline enum state state_of(const struct task_struct *task)
{
	unsigned int state = task->__state;

	if (task->exit_state)
		return ENDED;
	if (task->on_cpu)
		return RUNNING;
	if (state == TASK_RUNNING || state == TASK_WAKING)
		return QUEUED;
	/* Preempted on its way to sleep: still queued, unless EEVDF keeps a sleeper queued (6.12). */
	if (!task->on_rq)
		return SLEEPING;
	if (bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed)
		return SLEEPING;
	return QUEUED;
}

/* FNV-1a by words; CPUs beyond CPU_WORDS * 64 are not looked at. */
#define FNV_BASIS 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL
#define MIX(sum, word) ((sum) = ((sum) ^ (__u64)(word)) * FNV_PRIME)

#define MIX_CPUS(sum, task, word)                                                                  \
	do {                                                                                       \
		if (bpf_core_field_exists((task)->cpus_mask.bits[word]))                           \
			MIX(sum, (task)->cpus_mask.bits[word]);                                    \
	} while (0)

static __always_inline __u64 knobs_of(const struct task_struct *task)
{
	__u64 sum = FNV_BASIS;

	MIX(sum, task->policy);
	MIX(sum, task->static_prio);
	if (bpf_core_field_exists(task->se.slice))
		MIX(sum, task->se.slice);
	MIX_CPUS(sum, task, 0);
	MIX_CPUS(sum, task, 1);
	MIX_CPUS(sum, task, 2);
	MIX_CPUS(sum, task, 3);
	MIX_CPUS(sum, task, 4);
	MIX_CPUS(sum, task, 5);
	MIX_CPUS(sum, task, 6);
	MIX_CPUS(sum, task, 7);
	if (bpf_core_field_exists(task->sched_task_group))
		MIX(sum, task->sched_task_group->css.id);
	return sum;
}

static long collect_seat(__u32 at, struct collecting *ctx)
{
	struct seat *seat = bpf_map_lookup_elem(&seats, &at);
	struct task_struct *task;
	__u64 on_cpu_ns, ready_ns, knobs;
	enum state state;
	struct row *row;
	__u32 place;

	if (!seat)
		return 1;
	bpf_rcu_read_lock();
	task = seat->task;
	if (!task)
		goto out;
	state = state_of(task);
	on_cpu_ns = task->se.sum_exec_runtime;
	ready_ns = task->sched_info.run_delay;
	knobs = knobs_of(task);
	if (state == SLEEPING && seat->state == SLEEPING && seat->used_ns == on_cpu_ns + ready_ns &&
	    seat->knobs == knobs && !ctx->all)
		goto out;
	place = ctx->rows;
	row = bpf_map_lookup_elem(&rows, &place);
	if (!row)
		goto out;
	seat->used_ns = on_cpu_ns + ready_ns;
	seat->state = state;
	seat->knobs = knobs;
	row->knobs = knobs;
	row->seat = at;
	row->state = state;
	row->policy = task->policy;
	row->core = task->thread_info.cpu;
	row->on_cpu_ns = on_cpu_ns;
	row->ready_ns = ready_ns;
	row->dispatches = task->sched_info.pcount;
	row->voluntary_switches = task->nvcsw;
	row->involuntary_switches = task->nivcsw;
	ctx->rows = place + 1;
out:
	bpf_rcu_read_unlock();
	return 0;
}

SEC("syscall")
int collect(struct collecting *asked)
{
	struct collecting ctx = { .all = asked->all };

	bpf_loop(asked->seats, collect_seat, &ctx, 0);
	asked->rows = ctx.rows;
	return 0;
}
