// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler for hosts of VMs, in two levels.
 *
 * Between VMs: virtual time V = CPU ns x 100 / cpu.weight. A VM is a cgroup at a fixed depth. All user threads
 * above that depth are one more VM; kernel threads go first and are not charged. The clock M is the V of the class 1
 * thread picked last, and never more than `cap` behind any V. No V is more than `credit` behind M, so that who sleeps
 * saves up no claim beyond that.
 *
 * Inside a VM: a thread is critical if its bursts are short and others of its process wait for it: it is woken by
 * them, or wakes them. A critical thread of a VM in its share is class 0 and goes first; it preempts class 1 when
 * it wakes up. "In share" is asked against who waits: V is at most `debt` ahead of the first other VM waiting in class 1.
 * Class 1 is ordered by V; a critical thread out of share has V - debt there, so it still precedes its own VM's
 * background. A thread's class 0 time fills a bucket that leaks, so that nobody is critical all of the time.
 *
 * Words: what a daemon says of a thread, for as long as it attends. A latency below the slice makes the thread
 * critical, a longer one not, whatever its bursts say; a weight makes its slices shorter or longer. Debt, bucket
 * and order between VMs stay as they are.
 *
 * Queues: class 0 and class 1 of all CPUs, and the same of each CPU for threads that may run only there.
 */
#include "scx_kernel.h"

char LICENSE[] SEC("license") = "GPL";

#define MAX_CPUS 1024
#define MAX_VMS 1024
#define REST 1 /* the slot of all user threads in no VM, and of VMs beyond MAX_VMS */

#define SHARED_0 1
#define SHARED_1 2
#define OWN_0 0x10000
#define OWN_1 0x20000

#define LOOK_AHEAD 8	       /* waiting threads that are asked for another VM */
#define PREV_BONUS_NS 1000000  /* among CPUs to preempt the one where the thread ran last is that much better */
#define EPOCH (1ULL << 40)     /* virtual times start here: V - debt must not wrap */
#define CHAIN_ALWAYS 1024

#define NEUTRAL_WEIGHT 1024
#define LEAST_WEIGHT 256  /* a slice is a quarter at least, and four times as long at most */
#define MOST_WEIGHT 4096

enum running { CLASS_0, CLASS_1, NOBODY };

/* Set by the loader, which has the reasons of each (daemon/bpf/scx.py). */
struct options {
	__u32 cpus;
	__u32 vm_level;
	__u64 debt_ns;
	__u64 credit_ns;
	__u64 cap_ns;
	__u64 granularity_ns;
	__u64 slice_ns;
	__u64 critical_slice_ns;
	__u64 bucket_ns;
	__u64 starved_ns;
	__u64 short_ns;
	__u32 bucket_percent;
	__u32 chain_percent;
};

const volatile struct options options;

struct thread {
	__u32 vm;
	__u32 class;
	bool critical;
	bool chained;	   /* in this burst: woken by somebody, or woke a sibling */
	bool judged;	   /* a burst has ended */
	__u64 charged;	   /* sum_exec_runtime at the last charge */
	__u64 waits_since; /* 0 if it is in no queue */
	__u64 vm_time;	   /* V when it was queued */
	__u64 burst_ns;
	__u64 mean_burst_ns;
	__u32 chain;	   /* mean of chained, of CHAIN_ALWAYS */
	__u64 bucket_ns;
	__u64 leaked_at;
};

struct vm {
	__u64 time;
	__u64 used_ns;
	__u64 critical_ns; /* of these as class 0 */
	__u64 cgroup;
	__u32 weight;	   /* 0: the slot is free */
	__u32 threads;	   /* that run or wait */
};

struct cpu {
	__u32 class; /* of what it runs */
	__u32 vm;
	bool critical;
	bool kicked; /* will pick anew, so nobody else should preempt it */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* As in daemon/linux/extwords.py, which finds the map by its name. 0: nothing is said. */
struct word {
	__u32 weight;
	__u32 unused;
	__u64 latency_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct word);
} dasec_words SEC(".maps");

/* Until when (CLOCK_MONOTONIC) words count. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} attended SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_VMS);
	__type(key, __u32);
	__type(value, struct vm);
} vms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_VMS);
	__type(key, __u64);
	__type(value, __u32);
} vm_of_id SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* How it ended, for the loader. */
struct ending {
	__s64 code;
	__u32 kind;
	__u32 unused;
	char reason[128];
	char message[256];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ending);
} endings SEC(".maps");

static __u64 clock = EPOCH;

static bool before(__u64 a, __u64 b)
{
	return (__s64)(a - b) < 0;
}

static const struct task_struct___scx *scx_of(const struct task_struct *p)
{
	return (const struct task_struct___scx *)p;
}

static struct thread *thread_of(struct task_struct *p)
{
	return bpf_task_storage_get(&threads, p, 0, 0);
}

static struct vm *vm_at(__u32 slot)
{
	return bpf_map_lookup_elem(&vms, &slot);
}

static struct cpu *cpu_at(__s32 cpu)
{
	__u32 key = cpu;

	return bpf_map_lookup_elem(&cpus, &key);
}

static void insert(struct task_struct *p, __u64 queue, __u64 slice, __u64 flags)
{
	if (scx_bpf_dsq_insert)
		scx_bpf_dsq_insert(p, queue, slice, flags);
	else if (scx_bpf_dispatch)
		scx_bpf_dispatch(p, queue, slice, flags);
}

static void insert_by(struct task_struct *p, __u64 queue, __u64 slice, __u64 key, __u64 flags)
{
	if (scx_bpf_dsq_insert_vtime)
		scx_bpf_dsq_insert_vtime(p, queue, slice, key, flags);
	else if (scx_bpf_dispatch_vtime)
		scx_bpf_dispatch_vtime(p, queue, slice, key, flags);
}

static bool take_from(__u64 queue)
{
	if (scx_bpf_dsq_move_to_local)
		return scx_bpf_dsq_move_to_local(queue);
	return scx_bpf_consume ? scx_bpf_consume(queue) : false;
}

/* A device or the timer wakes on behalf of nobody, whoever happens to run. */
static bool in_interrupt(void)
{
	if (&pcpu_hot) {
		const struct pcpu_hot *hot = bpf_this_cpu_ptr(&pcpu_hot);

		return hot->preempt_count & HARDIRQ_BITS;
	}
	if (&__preempt_count) {
		const int *count = bpf_this_cpu_ptr(&__preempt_count);

		return *count & HARDIRQ_BITS;
	}
	return false;
}

/* A BPF program has migration disabled for its caller, so that says nothing of the caller itself. */
static bool is_pinned(struct task_struct *p)
{
	const struct task_struct___scx *q = scx_of(p);
	int disabled = q->migration_disabled;

	if (q->nr_cpus_allowed == 1 || disabled > 1)
		return true;
	return disabled == 1 && bpf_get_current_task_btf() != p;
}

static const struct word *word_of(struct task_struct *p)
{
	__u32 zero = 0;
	__u64 *until = bpf_map_lookup_elem(&attended, &zero);

	if (!until || before(*until, bpf_ktime_get_ns()))
		return NULL;
	return bpf_task_storage_get(&dasec_words, p, 0, 0);
}

/* In its first burst as long as that is short, so that a new thread is not behind all others. */
static bool is_critical(const struct thread *t, const struct word *said)
{
	if (said && said->latency_ns && said->latency_ns != options.slice_ns)
		return said->latency_ns < options.slice_ns;
	if (!t->judged)
		return t->burst_ns < options.short_ns;
	return t->mean_burst_ns < options.short_ns && t->chain * 100 >= options.chain_percent * CHAIN_ALWAYS;
}

/*
 * Is another VM that waits first in this queue of class 1 more than the debt behind? If so many of our own wait first
 * that no other is seen, how long these wait says it: a VM must not hide others behind its own threads.
 */
static __noinline bool others_need(__u64 queue, __u32 vm, __u64 time)
{
	struct bpf_iter_scx_dsq waiting;
	struct task_struct *p;
	bool need = false;
	int looked = 0;

	bpf_iter_scx_dsq_new(&waiting, queue, 0);
	while (looked++ < LOOK_AHEAD && (p = bpf_iter_scx_dsq_next(&waiting))) {
		struct thread *t = thread_of(p);

		if (t && (t->vm != vm || looked == LOOK_AHEAD)) {
			need = before(t->vm_time + options.debt_ns, time);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&waiting);
	return need;
}

static bool bucket_is_full(struct thread *t, __u64 now)
{
	__u64 leak = (now - t->leaked_at) * options.bucket_percent / 100;

	t->bucket_ns = t->bucket_ns > leak ? t->bucket_ns - leak : 0;
	t->leaked_at = now;
	return t->bucket_ns > options.bucket_ns;
}

/* `own`: the queue of the only CPU on which it may run, or 0. */
static __u32 class_of(struct thread *t, struct vm *v, __u64 now, __u64 own)
{
	if (!t->vm)
		return CLASS_0;
	if (!t->critical || others_need(SHARED_1, t->vm, v->time))
		return CLASS_1;
	if (own && others_need(own, t->vm, v->time))
		return CLASS_1;
	return bucket_is_full(t, now) ? CLASS_1 : CLASS_0;
}

static __u64 class_1_key(bool critical, const struct vm *v)
{
	return v->time - (critical ? options.debt_ns : 0);
}

static void charge(struct task_struct *p, struct thread *t)
{
	__u64 sum = p->se.sum_exec_runtime, ns = sum - t->charged, now;
	struct vm *v = vm_at(t->vm);

	t->charged = sum;
	if (!v || !t->vm || (__s64)ns <= 0)
		return;
	t->burst_ns += ns;
	__sync_fetch_and_add(&v->used_ns, ns);
	if (t->class == CLASS_0) {
		t->bucket_ns += ns;
		__sync_fetch_and_add(&v->critical_ns, ns);
	}
	__sync_fetch_and_add(&v->time, ns * 100 / (v->weight ? v->weight : 100));
	if (before(clock, v->time - options.cap_ns))
		clock = v->time - options.cap_ns;
	now = clock;
	if (before(v->time, now - options.credit_ns))
		v->time = now - options.credit_ns;
}

static __u64 slice_of(const struct thread *t, const struct word *said)
{
	__u64 weight = said && said->weight ? said->weight : NEUTRAL_WEIGHT;

	if (t->class == CLASS_0)
		return options.critical_slice_ns;
	if (weight < LEAST_WEIGHT)
		weight = LEAST_WEIGHT;
	else if (weight > MOST_WEIGHT)
		weight = MOST_WEIGHT;
	return options.slice_ns * weight / NEUTRAL_WEIGHT;
}

/* The key of class 1 of what runs there now. */
static __u64 running_key(const struct cpu *c)
{
	struct vm *v = vm_at(c->vm);

	return v ? class_1_key(c->critical, v) : 0;
}

static bool may_preempt(const struct thread *t, __u64 key, const struct cpu *c)
{
	if (c->class != CLASS_1 || c->kicked)
		return false;
	return t->class == CLASS_0 || (t->critical && before(key + options.granularity_ns, running_key(c)));
}

SEC("struct_ops/dasec_select_cpu")
__s32 BPF_PROG(dasec_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool idle = false;
	__s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, 0, &idle);
	const struct word *said;
	struct thread *t;

	if (!idle)
		return cpu;
	t = thread_of(p);
	if (t) {
		said = word_of(p);
		t->critical = is_critical(t, said);
		t->class = t->vm && !t->critical ? CLASS_1 : CLASS_0;
		t->waits_since = 0;
		insert(p, SCX_DSQ_LOCAL, slice_of(t, said), 0);
	}
	return cpu;
}

static void kick(__s32 cpu)
{
	struct cpu *c = cpu_at(cpu);

	if (c)
		c->kicked = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Of the CPUs that run class 1, preempt the one whose VM is ahead most. */
static __noinline void preempt_one(struct task_struct *p, struct thread *t, __u64 key)
{
	__s32 best = -1, prev = scx_bpf_task_cpu(p);
	struct bpf_iter_num numbers;
	__u64 best_key = 0;
	int *number;

	bpf_iter_num_new(&numbers, 0, options.cpus);
	while ((number = bpf_iter_num_next(&numbers))) {
		__s32 cpu = *number;
		struct cpu *c = cpu_at(cpu);
		__u64 theirs;

		if (!c || !may_preempt(t, key, c) || !bpf_cpumask_test_cpu(cpu, scx_of(p)->cpus_ptr))
			continue;
		theirs = running_key(c) + (cpu == prev ? PREV_BONUS_NS : 0);
		if (best < 0 || before(best_key, theirs)) {
			best = cpu;
			best_key = theirs;
		}
	}
	bpf_iter_num_destroy(&numbers);
	if (best >= 0)
		kick(best);
}

SEC("struct_ops/dasec_enqueue")
void BPF_PROG(dasec_enqueue, struct task_struct *p, __u64 enq_flags)
{
	__u64 now = bpf_ktime_get_ns(), key;
	struct thread *t = thread_of(p);
	struct vm *v = t ? vm_at(t->vm) : NULL;
	const struct word *said = word_of(p);
	__s32 own = -1, idle;

	if (!t) {
		insert(p, SCX_DSQ_GLOBAL, options.slice_ns, enq_flags);
		return;
	}
	if (!v) {
		insert(p, SCX_DSQ_GLOBAL, options.slice_ns, enq_flags);
		return;
	}
	if (is_pinned(p))
		own = scx_bpf_task_cpu(p);
	t->critical = is_critical(t, said);
	t->class = class_of(t, v, now, own < 0 ? 0 : OWN_1 + own);
	t->waits_since = now;
	t->vm_time = v->time;
	key = t->class == CLASS_0 ? now : class_1_key(t->critical, v);
	if (own >= 0) {
		struct cpu *c = cpu_at(own);

		insert_by(p, (t->class == CLASS_0 ? OWN_0 : OWN_1) + own, slice_of(t, said), key, enq_flags);
		if (c && may_preempt(t, key, c))
			kick(own);
		return;
	}
	insert_by(p, t->class == CLASS_0 ? SHARED_0 : SHARED_1, slice_of(t, said), key, enq_flags);
	idle = scx_bpf_pick_idle_cpu(scx_of(p)->cpus_ptr, 0);
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	else if (t->critical)
		preempt_one(p, t, key);
}

/* Who is first in a queue: key and beginning of the wait; 0 and 0 if nobody is. */
struct head {
	__u64 key;
	__u64 since;
};

static __noinline void look_at(__u64 queue, struct head *head)
{
	struct bpf_iter_scx_dsq waiting;
	struct task_struct *p;

	head->key = head->since = 0;
	bpf_iter_scx_dsq_new(&waiting, queue, 0);
	p = bpf_iter_scx_dsq_next(&waiting);
	if (p) {
		struct thread *t = thread_of(p);

		head->key = scx_of(p)->scx.dsq_vtime;
		head->since = 1;
		if (t)
			head->since = t->waits_since;
	}
	bpf_iter_scx_dsq_destroy(&waiting);
}

static bool is_starved(__u64 since, __u64 now)
{
	return since > 1 && before(since + options.starved_ns, now);
}

/* Whether what ran goes on, since nobody who waits is before it. */
static __noinline bool keeps(struct task_struct *prev, __s32 cpu, __u64 now, bool waiting, __u64 first)
{
	struct thread *t = thread_of(prev);
	struct vm *v = t ? vm_at(t->vm) : NULL;
	const struct word *said = word_of(prev);
	struct cpu *c = cpu_at(cpu);

	if (!t)
		return false;
	if (!v)
		return false;
	charge(prev, t);
	t->critical = is_critical(t, said);
	t->class = class_of(t, v, now, is_pinned(prev) ? OWN_1 + cpu : 0);
	if (waiting && t->class == CLASS_1 && before(first, class_1_key(t->critical, v)))
		return false;
	((struct task_struct___scx *)prev)->scx.slice = slice_of(t, said);
	if (c) {
		c->class = t->class;
		c->critical = t->critical;
	}
	return true;
}

SEC("struct_ops/dasec_dispatch")
void BPF_PROG(dasec_dispatch, __s32 cpu, struct task_struct *prev)
{
	__u64 now = bpf_ktime_get_ns(), first, second;
	struct cpu *c = cpu_at(cpu);
	struct head own, shared;
	bool own_first;

	if (c)
		c->kicked = false;
	look_at(OWN_1 + cpu, &own);
	look_at(SHARED_1, &shared);
	if (is_starved(own.since, now) && take_from(OWN_1 + cpu))
		return;
	if (is_starved(shared.since, now) && take_from(SHARED_1))
		return;
	if (take_from(OWN_0 + cpu) || take_from(SHARED_0))
		return;
	own_first = own.since && (!shared.since || !before(shared.key, own.key));
	if (prev && scx_of(prev)->scx.flags & SCX_TASK_QUEUED &&
	    keeps(prev, cpu, now, own.since || shared.since, own_first ? own.key : shared.key))
		return;
	first = own_first ? OWN_1 + cpu : SHARED_1;
	second = own_first ? SHARED_1 : OWN_1 + cpu;
	if (!take_from(first))
		take_from(second);
}

SEC("struct_ops/dasec_running")
void BPF_PROG(dasec_running, struct task_struct *p)
{
	struct cpu *c = cpu_at(scx_bpf_task_cpu(p));
	struct thread *t = thread_of(p);
	bool starved;

	if (!t)
		return;
	if (!c)
		return;
	starved = is_starved(t->waits_since, bpf_ktime_get_ns());
	t->charged = p->se.sum_exec_runtime;
	c->vm = t->vm;
	c->critical = t->critical;
	c->kicked = false;
	/* Who had starved is not preempted for a slice, and the clock does not follow it. */
	c->class = t->class == CLASS_1 && starved ? CLASS_0 : t->class;
	if (t->class == CLASS_1 && !starved && t->waits_since && before(clock, scx_of(p)->scx.dsq_vtime))
		clock = scx_of(p)->scx.dsq_vtime;
	t->waits_since = 0;
}

SEC("struct_ops/dasec_stopping")
void BPF_PROG(dasec_stopping, struct task_struct *p, bool runnable)
{
	struct cpu *c = cpu_at(scx_bpf_task_cpu(p));
	struct thread *t = thread_of(p);

	if (t)
		charge(p, t);
	if (c)
		c->class = NOBODY;
}

SEC("struct_ops/dasec_tick")
void BPF_PROG(dasec_tick, struct task_struct *p)
{
	struct thread *t = thread_of(p);

	if (t)
		charge(p, t);
}

SEC("struct_ops/dasec_runnable")
void BPF_PROG(dasec_runnable, struct task_struct *p, __u64 enq_flags)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct thread *t = thread_of(p), *w;
	struct vm *v;

	if (!t || !t->vm)
		return;
	v = vm_at(t->vm);
	if (v && __sync_fetch_and_add(&v->threads, 1) == 0 && before(v->time, clock - options.credit_ns))
		v->time = clock - options.credit_ns;
	if (!(enq_flags & SCX_ENQ_WAKEUP) || in_interrupt())
		return;
	t->chained = true;
	if (scx_of(waker)->tgid != scx_of(p)->tgid)
		return;
	w = thread_of(waker);
	if (w)
		w->chained = true;
}

static void judge(struct thread *t)
{
	__u32 chained = t->chained ? CHAIN_ALWAYS : 0;

	t->mean_burst_ns = t->judged ? (t->mean_burst_ns * 7 + t->burst_ns) / 8 : t->burst_ns;
	t->chain = t->judged ? (t->chain * 7 + chained) / 8 : chained;
	t->judged = true;
	t->chained = false;
	t->burst_ns = 0;
}

SEC("struct_ops/dasec_quiescent")
void BPF_PROG(dasec_quiescent, struct task_struct *p, __u64 deq_flags)
{
	struct thread *t = thread_of(p);
	struct vm *v;

	if (!t || !t->vm)
		return;
	v = vm_at(t->vm);
	if (v && v->threads)
		__sync_fetch_and_add(&v->threads, -1);
	if (deq_flags & SCX_DEQ_SLEEP)
		judge(t);
}

/* The slot of the VM that this cgroup is, or belongs to. */
static __noinline __u32 slot_of(__u64 id)
{
	struct cgroup *vm, *cgrp = bpf_cgroup_from_id(id);
	__u32 *slot = NULL;

	if (!cgrp)
		return REST;
	vm = bpf_cgroup_ancestor(cgrp, options.vm_level);
	bpf_cgroup_release(cgrp);
	if (!vm)
		return REST;
	id = vm->kn->id;
	bpf_cgroup_release(vm);
	slot = bpf_map_lookup_elem(&vm_of_id, &id);
	return slot ? *slot : REST;
}

SEC("struct_ops/dasec_cgroup_init")
__s32 BPF_PROG(dasec_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	__u64 id = cgrp->kn->id;
	struct bpf_iter_num slots;
	int *slot;

	if (cgrp->level != (int)options.vm_level)
		return 0;
	bpf_iter_num_new(&slots, REST + 1, MAX_VMS);
	while ((slot = bpf_iter_num_next(&slots))) {
		__u32 at = *slot;
		struct vm *v = vm_at(at);

		if (!v || v->weight)
			continue;
		v->weight = args->weight;
		v->cgroup = id;
		v->time = clock;
		v->used_ns = v->critical_ns = 0;
		v->threads = 0;
		bpf_map_update_elem(&vm_of_id, &id, &at, BPF_ANY);
		break;
	}
	bpf_iter_num_destroy(&slots);
	return 0;
}

SEC("struct_ops/dasec_cgroup_exit")
void BPF_PROG(dasec_cgroup_exit, struct cgroup *cgrp)
{
	__u64 id = cgrp->kn->id;
	__u32 *slot = bpf_map_lookup_elem(&vm_of_id, &id);
	struct vm *v = slot ? vm_at(*slot) : NULL;

	if (v)
		v->weight = 0;
	bpf_map_delete_elem(&vm_of_id, &id);
}

SEC("struct_ops/dasec_cgroup_move")
void BPF_PROG(dasec_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct thread *t = thread_of(p);

	if (t && t->vm)
		t->vm = slot_of(to->kn->id);
}

SEC("struct_ops/dasec_cgroup_set_weight")
void BPF_PROG(dasec_cgroup_set_weight, struct cgroup *cgrp, __u32 weight)
{
	__u64 id = cgrp->kn->id;
	__u32 *slot = bpf_map_lookup_elem(&vm_of_id, &id);
	struct vm *v = slot ? vm_at(*slot) : NULL;

	if (v)
		v->weight = weight;
}

SEC("struct_ops/dasec_init_task")
__s32 BPF_PROG(dasec_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return -ENOMEM;
	t->charged = p->se.sum_exec_runtime;
	t->vm = scx_of(p)->flags & PF_KTHREAD ? 0 : slot_of(args->cgroup->kn->id);
	return 0;
}

SEC("struct_ops/dasec_init")
__s32 BPF_PROG(dasec_init)
{
	struct vm *rest = vm_at(REST);
	struct bpf_iter_num numbers;
	__s32 error;
	int *number;

	if (rest) {
		rest->weight = 100;
		rest->time = clock;
	}
	error = scx_bpf_create_dsq(SHARED_0, -1);
	if (!error)
		error = scx_bpf_create_dsq(SHARED_1, -1);
	bpf_iter_num_new(&numbers, 0, options.cpus);
	while ((number = bpf_iter_num_next(&numbers))) {
		__u32 cpu = *number;
		struct cpu *c = cpu_at(cpu);

		if (c)
			c->class = NOBODY;
		if (!error)
			error = scx_bpf_create_dsq(OWN_0 + cpu, -1);
		if (!error)
			error = scx_bpf_create_dsq(OWN_1 + cpu, -1);
	}
	bpf_iter_num_destroy(&numbers);
	return error;
}

SEC("struct_ops/dasec_exit")
void BPF_PROG(dasec_exit, struct scx_exit_info *info)
{
	__u32 zero = 0;
	struct ending *ending = bpf_map_lookup_elem(&endings, &zero);

	if (!ending)
		return;
	bpf_probe_read_kernel_str(ending->reason, sizeof(ending->reason), info->reason);
	bpf_probe_read_kernel_str(ending->message, sizeof(ending->message), info->msg);
	ending->code = info->exit_code;
	ending->kind = info->kind;
}

/* A thread that a scheduling class above us has taken the CPU from may run elsewhere. */
SEC("struct_ops/dasec_cpu_release")
void BPF_PROG(dasec_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

#define DASEC_OPERATIONS \
	.select_cpu = (void *)dasec_select_cpu, \
	.enqueue = (void *)dasec_enqueue, \
	.dispatch = (void *)dasec_dispatch, \
	.tick = (void *)dasec_tick, \
	.runnable = (void *)dasec_runnable, \
	.running = (void *)dasec_running, \
	.stopping = (void *)dasec_stopping, \
	.quiescent = (void *)dasec_quiescent, \
	.init_task = (void *)dasec_init_task, \
	.cgroup_init = (void *)dasec_cgroup_init, \
	.cgroup_exit = (void *)dasec_cgroup_exit, \
	.cgroup_move = (void *)dasec_cgroup_move, \
	.cgroup_set_weight = (void *)dasec_cgroup_set_weight, \
	.init = (void *)dasec_init, \
	.exit = (void *)dasec_exit, \
	.timeout_ms = 5000, \
	.name = "dasec",

/* All threads of the host. */
SEC(".struct_ops")
struct sched_ext_ops dasec_ops = {
	DASEC_OPERATIONS
};

/* Those of policy SCHED_EXT only, which run when the kernel's own scheduler has nobody to run on a CPU. */
SEC(".struct_ops")
struct sched_ext_ops dasec_partial_ops = {
	DASEC_OPERATIONS
	.cpu_release = (void *)dasec_cpu_release,
	.flags = SCX_OPS_SWITCH_PARTIAL,
};
