// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who wakes whom, and what it costs whoever waits: the threads of managed workloads at each wake-up and
 * each context switch.
 *
 * A thread is followed by task storage, which belongs to the thread itself and goes when it ends: no thread
 * can inherit what was counted for a former owner of its id. User space gives each followed thread a slot (an
 * index into `threads`) and a serial number that is never used twice; edges are keyed by serial numbers.
 *
 * Class of a wake-up: made in interrupt context it is timer (local timer interrupt, timer softirqs) or external
 * (all other interrupts), whoever happens to be interrupted; otherwise sibling if the waker is followed and of the
 * same workload, else external. A wake-up that a followed thread makes of anybody outside its workload, outside
 * interrupts, is outward: counted for the waker, whoever the wakee is. The kernel has no helper for "in interrupt", so programs at the entries and exits
 * keep a word per CPU.
 *
 * Two levels, by which programs are loaded: waking_edges alone counts wake-ups and edges; waking_full with
 * switching measures run, ready and sleep time, bursts, preemptions, chain and blame, too.
 *
 * Who writes what: a thread's wake-up counts and its way out of sleep are written under its pi_lock, which the
 * kernel holds at sched_waking; everything else by the core that it runs on. So plain additions do.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#define SLOTS 4096
#define EDGES 16384

/* Ready times kept of each thread: blame looks back over the sleep of whoever is woken. */
#define PAST 64

enum state { UNKNOWN = 0, ASLEEP = 1, READY = 2, RUNNING = 3 };
enum class { SIBLING = 0, EXTERNAL = 1, TIMER = 2 };

/* Wakers whose edges lie beside their wakee, which saves the hash map's look-up. The first come stay. */
#define NEAR 6

struct edge {
	__u64 wakeups;
	__u64 blame_ns;
};

/* Of one followed thread; user space reads it as memory. */
struct thread {
	__u32 serial;
	__u32 state;
	__u64 since_ns;
	__u64 sibling;
	__u64 external;
	__u64 timer;
	__u64 run_ns;
	__u64 ready_ns;
	__u64 sleep_ns;
	__u64 bursts;
	__u64 dispatches;
	__u64 preemptions;
	__u64 chain_ns;
	__u64 blame_ns;
	__u64 blame_cut;  /* blames that look back further than PAST, so they are too low */
	__u64 outward;	  /* wake-ups that it made of others than siblings */
	__u64 episode_ns; /* run and ready since the wake-up, while it is not known to be chain */
	__u32 in_chain;
	__u32 early;	  /* class + 1 of a wake-up that came while it was still going to sleep */
	__u32 wakers[NEAR];
	struct edge near[NEAR];
};

struct ready {
	__u64 from_ns;
	__u64 to_ns;
};

struct past {
	__u64 count;
	struct ready ready[PAST];
};

struct followed {
	__u32 slot;
	__u32 serial;
	__u32 workload;
	__u32 unused;
};

/* The edges that are not near. */
struct edge_key {
	__u32 waker;
	__u32 wakee;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct followed);
} follows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct past);
} pasts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EDGES);
	__type(key, struct edge_key);
	__type(value, struct edge);
} edges SEC(".maps");

/* What else user space wants to know at a glance. */
struct totals {
	__u64 far;    /* entries ever made in `edges`: while there is none, it need not be read */
	__u64 lost;   /* wake-ups by siblings that found no room in `edges` */
	__u64 missed; /* wake-ups and dispatches that a later event shows to have been */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

#define IN_TIMER 1U
#define IN_INTERRUPT 2U
#define IN_TIMER_SOFTIRQ 4U
#define IN_SOFTIRQ 8U

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
BRACKET(irq_handler, IN_INTERRUPT)
BRACKET(call_function, IN_INTERRUPT)
BRACKET(call_function_single, IN_INTERRUPT)
BRACKET(irq_work, IN_INTERRUPT)

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

/* Most threads have no storage at all: looking first saves them the call. */
static __always_inline struct followed *follow_of(struct task_struct *task)
{
	if (!task->bpf_storage)
		return 0;
	return bpf_task_storage_get(&follows, task, 0, 0);
}

static __always_inline struct thread *thread_of(const struct followed *followed)
{
	__u32 slot = followed->slot;

	return bpf_map_lookup_elem(&threads, &slot);
}

/*
 * Who runs on this core: from the core's own note if it still holds, which saves a look-up. No note is pid 0, and
 * so is the idle task.
 */
static __always_inline struct followed *follow_of_running(struct core *core, struct task_struct *task)
{
	struct thread *thread;

	if (core->pid && core->pid == task->pid) {
		thread = thread_of(&core->followed);
		if (thread && thread->serial == core->followed.serial)
			return &core->followed;
	}
	return follow_of(task);
}

/* Sets *waker if a followed thread makes this wake-up: a sibling, if that is the class. */
static __always_inline enum class class_of(const struct followed *wakee, struct followed **waker)
{
	struct core *core = this_core();

	if (!core)
		return EXTERNAL;
	if (core->context & (IN_TIMER | IN_INTERRUPT)) /* a softirq may be what it interrupted */
		return core->context & IN_TIMER ? TIMER : EXTERNAL;
	if (core->context)
		return core->context & IN_TIMER_SOFTIRQ ? TIMER : EXTERNAL;
	*waker = follow_of_running(core, bpf_get_current_task_btf());
	if (*waker && (*waker)->workload == wakee->workload && (*waker)->serial != wakee->serial)
		return SIBLING;
	return EXTERNAL;
}

static __always_inline void count_outward(const struct followed *waker)
{
	struct thread *thread = thread_of(waker);

	if (thread)
		thread->outward++;
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
	if (!core || core->context)
		return 0;
	waker = follow_of_running(core, task);
	if (waker)
		count_outward(waker);
	return 0;
}

static __always_inline void count(struct thread *wakee, enum class class)
{
	if (class == SIBLING)
		wakee->sibling++;
	else if (class == EXTERNAL)
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

static __always_inline void add_edge(__u32 waker, struct thread *wakee, __u64 blame_ns)
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
	struct thread *thread;
	enum class class;

	if (!wakee)
		return wakes_stranger();
	class = class_of(wakee, &waker);
	thread = thread_of(wakee);
	if (!thread)
		return 0;
	count(thread, class);
	if (waker && waker->workload != wakee->workload)
		count_outward(waker);
	if (class == SIBLING && waker)
		add_edge(waker->serial, thread, 0);
	return 0;
}

/* Time of an episode, which lasts from a wake-up to the next sleep. */
static __always_inline void spend(struct thread *thread, __u64 ns)
{
	if (thread->in_chain)
		thread->chain_ns += ns;
	else
		thread->episode_ns += ns;
}

static __always_inline void join_chain(struct thread *thread)
{
	thread->in_chain = 1;
	thread->chain_ns += thread->episode_ns;
	thread->episode_ns = 0;
}

static __always_inline void end_sleep(struct thread *thread, enum class class)
{
	thread->in_chain = class != TIMER;
	thread->episode_ns = 0;
}

/* How long the thread was ready since then. It runs now, so all its ready times are complete. */
static __always_inline __u64 ready_since(struct thread *thread, __u32 slot, __u64 from_ns)
{
	struct past *past = bpf_map_lookup_elem(&pasts, &slot);
	__u64 sum_ns = 0, count, back;

	if (!past)
		return 0;
	count = past->count;
	for (back = 1; back <= PAST; back++) {
		struct ready *ready = &past->ready[(count - back) % PAST];

		if (back > count || ready->to_ns <= from_ns)
			return sum_ns;
		if (ready->from_ns <= from_ns)
			return sum_ns + ready->to_ns - from_ns;
		sum_ns += ready->to_ns - ready->from_ns;
	}
	if (count > PAST)
		thread->blame_cut++;
	return sum_ns;
}

static __always_inline void remember_ready(const struct followed *followed, __u64 from_ns, __u64 to_ns)
{
	__u32 slot = followed->slot;
	struct past *past = bpf_map_lookup_elem(&pasts, &slot);

	if (past) {
		struct ready *ready = &past->ready[past->count % PAST];

		ready->from_ns = from_ns;
		ready->to_ns = to_ns;
		past->count++;
	}
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking_full, struct task_struct *task)
{
	struct followed *wakee = follow_of(task), *waker = 0;
	__u64 now_ns, slept_since_ns = 0, blame_ns = 0;
	struct thread *thread, *by;
	enum class class;

	if (!wakee)
		return wakes_stranger();
	thread = thread_of(wakee);
	if (!thread)
		return 0;
	class = class_of(wakee, &waker);
	count(thread, class);
	if (waker && waker->workload != wakee->workload)
		count_outward(waker);
	if (thread->state == UNKNOWN || thread->state == ASLEEP) {
		now_ns = bpf_ktime_get_ns();
		if (thread->state == ASLEEP)
			slept_since_ns = thread->since_ns;
		thread->sleep_ns += now_ns - thread->since_ns;
		thread->since_ns = now_ns;
		thread->state = READY;
		end_sleep(thread, class);
	} else {
		thread->early = class + 1;
	}
	if (class != SIBLING || !waker)
		return 0;
	by = thread_of(waker);
	if (by) {
		if (slept_since_ns)
			blame_ns = ready_since(by, waker->slot, slept_since_ns);
		by->blame_ns += blame_ns;
		if (!by->in_chain)
			join_chain(by);
	}
	add_edge(waker->serial, thread, blame_ns);
	return 0;
}

/*
 * What came before this event was not seen. (A kernel may run no program of ours while certain threads are current,
 * whatever interrupts them or follows them on their core: docs/measurements.md.)
 */
static __always_inline void miss(void)
{
	__u32 zero = 0;
	struct totals *total = bpf_map_lookup_elem(&totals, &zero);

	if (total)
		__sync_fetch_and_add(&total->missed, 1);
}

/* The thread gets a core. One that was woken before it had left its core (`early`) never slept. */
static __always_inline void dispatch(const struct followed *followed, __u64 now_ns)
{
	struct thread *thread = thread_of(followed);
	__u64 ready_ns;

	if (!thread)
		return;
	if (thread->state == ASLEEP && !thread->early) {
		/* Woken unseen, nobody knows when: who is not known to have been ready is no victim. */
		miss();
		thread->sleep_ns += now_ns - thread->since_ns;
		end_sleep(thread, TIMER);
	} else if (thread->state == READY || thread->state == ASLEEP) {
		if (thread->state == ASLEEP)
			end_sleep(thread, thread->early - 1);
		ready_ns = now_ns - thread->since_ns;
		thread->ready_ns += ready_ns;
		spend(thread, ready_ns);
		remember_ready(followed, thread->since_ns, now_ns);
	}
	thread->dispatches++;
	thread->early = 0;
	thread->since_ns = now_ns;
	thread->state = RUNNING;
}

/* The thread loses its core. Its own state, not the tracepoint's: 6.12 shows one that a signal has undone. */
static __always_inline void displace(const struct followed *followed, struct task_struct *task,
				     bool preempt, __u64 now_ns)
{
	struct thread *thread = thread_of(followed);
	bool sleeps = !preempt && task->__state != TASK_RUNNING;

	if (!thread)
		return;
	if (thread->state == RUNNING) {
		thread->run_ns += now_ns - thread->since_ns;
		spend(thread, now_ns - thread->since_ns);
	} else if (thread->state != UNKNOWN) {
		miss(); /* it got its core unseen, nobody knows when: that time counts as nothing */
	}
	if (sleeps)
		thread->bursts++;
	else
		thread->preemptions++;
	thread->since_ns = now_ns;
	thread->state = sleeps ? ASLEEP : READY;
}

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
		displace(leaves, former, preempt, now_ns);
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
	struct thread *thread = bpf_map_lookup_elem(&threads, &slot);
	struct past *past = bpf_map_lookup_elem(&pasts, &slot);
	struct followed *followed;
	struct task_struct *task;

	if (!thread)
		return 1;
	task = find(order);
	if (!task)
		return 2;
	__builtin_memset(thread, 0, sizeof(*thread));
	if (past) /* waking_edges needs none */
		past->count = 0;
	thread->serial = order->serial;
	thread->since_ns = bpf_ktime_get_ns();
	followed = bpf_task_storage_get(&follows, task, &first, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (followed && followed->serial != order->serial)
		*followed = first;
	/* From here on its events are seen; the first of them knows better than we do. */
	__sync_val_compare_and_swap(&thread->state, UNKNOWN, present(task));
	bpf_task_release(task);
	return followed ? 0 : 3;
}

struct renewal {
	__u32 slots; /* how many to go through */
	__u32 unused;
};

/* What is under way counts until now, as whoever reads the row has it; then nobody knows what the thread is doing. */
static long renew_slot(__u32 slot, void *ctx)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &slot);
	__u64 now_ns, since_ns, passed_ns;

	if (!thread)
		return 1;
	since_ns = thread->since_ns;
	now_ns = bpf_ktime_get_ns();
	passed_ns = now_ns > since_ns ? now_ns - since_ns : 0;
	if (thread->state == RUNNING)
		thread->run_ns += passed_ns;
	if (thread->state == READY)
		thread->ready_ns += passed_ns;
	if (thread->state == RUNNING || thread->state == READY)
		spend(thread, passed_ns);
	thread->state = UNKNOWN;
	thread->since_ns = now_ns;
	thread->episode_ns = 0;
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
	bpf_task_storage_delete(&follows, task);
	bpf_task_release(task);
	return 0;
}
