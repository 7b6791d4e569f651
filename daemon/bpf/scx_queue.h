/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who waits. Each VM has a queue for its critical threads and one for all others, first come, first served; the same
 * two for each CPU, for threads that may run only there. Bits say which VMs wait: `own` of a CPU is only touched with that CPU's
 * run queue locked; a bit of `shared` follows the VM's count.
 *
 * What is `part` is checked by the verifier once and not wherever it is called: it takes numbers, and gives one.
 */
#ifndef DASEC_SCX_QUEUE_H
#define DASEC_SCX_QUEUE_H

#include "scx_share.h"

#define QUEUES (1ULL << 40)
#define LOOKED_AT_THREADS 8 /* for one that last ran near */
#define CPU_WORD (MAX_CPUS / 64 - 1) /* bounds the number of a word of CPUs */

static __u64 queue_of(__s32 cpu, __u32 vm, __u32 class)
{
	return QUEUES | (__u64)(cpu + 1) << 16 | vm << 1 | class;
}

static void insert(struct task_struct *p, __u64 queue, __u64 slice, __u64 flags)
{
	if (scx_bpf_dsq_insert)
		scx_bpf_dsq_insert(p, queue, slice, flags);
	else if (scx_bpf_dispatch)
		scx_bpf_dispatch(p, queue, slice, flags);
}

static bool take_from(__u64 queue)
{
	if (scx_bpf_dsq_move_to_local)
		return scx_bpf_dsq_move_to_local(queue);
	return scx_bpf_consume ? scx_bpf_consume(queue) : false;
}

/*
 * A BPF program has migration disabled for its caller, so that says nothing of the caller itself: not once, and not twice where one
 * calls another (dasec_cpu_release()).
 */
static bool is_pinned(struct task_struct *p)
{
	const struct task_struct___scx *q = scx_of(p);
	int disabled = q->migration_disabled;
	struct cpu *here;

	if (q->nr_cpus_allowed == 1)
		return true;
	if (disabled <= 0)
		return false;
	if (bpf_get_current_task_btf() != p)
		return true;
	here = cpu_at(bpf_get_smp_processor_id());
	return disabled > (here && here->releasing ? 2 : 1);
}

#define DE_BRUIJN 0x03f79d71b4cb0a89ULL /* times a power of two, the six bits at its top are another for each */

static const __u8 power_of[64] SEC(".rodata.powers") = {
	0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,	62, 55, 59, 36, 53, 51,
	43, 22, 45, 39, 33, 30, 24, 18, 12, 5,	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
	44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
};

/* The number of the lowest bit of some. */
static __u32 lowest(__u64 bits)
{
	return power_of[(bits & -bits) * DE_BRUIJN >> 58];
}

static bool reaches_cpu(__u32 vm, __s32 cpu)
{
	struct reach *r = bpf_map_lookup_elem(&reaches, &vm);

	return r && r->cpus[(__u32)cpu / 64 & CPU_WORD] >> (cpu & 63) & 1;
}

/* After its VM's count has said that it waits, so that forget_reach() does not miss it. */
static void add_reach(struct task_struct *p, struct thread *t)
{
	const struct task_struct___scx *q = scx_of(p);
	struct reach *r = bpf_map_lookup_elem(&reaches, &t->vm);
	__u64 mask = (__u64)q->cpus_ptr, bits = ~0ULL;
	__u32 word;

	t->narrow = q->nr_cpus_allowed < (int)online_cpus;
	if (!r)
		return;
	for (word = zero; word < (options.cpus + 63) / 64 && may_go_on(); word++) {
		if (t->narrow)
			bpf_probe_read_kernel(&bits, sizeof(bits), (void *)(mask + word * sizeof(bits)));
		if (bits & ~r->cpus[word & CPU_WORD])
			__sync_fetch_and_or(&r->cpus[word & CPU_WORD], bits);
	}
}

/* Where the last thread that waited was a narrow one. If another has come meanwhile, all CPUs. */
static void forget_reach(const struct vm *v, __u32 vm)
{
	struct reach *r = bpf_map_lookup_elem(&reaches, &vm);
	__u32 word;

	if (!r)
		return;
	for (word = zero; word < (options.cpus + 63) / 64 && may_go_on(); word++) {
		__sync_lock_test_and_set(&r->cpus[word & CPU_WORD], 0); /* ordered before what follows, also on arm64 */
		if (v->shared[CRITICAL] || v->shared[OTHER])
			__sync_fetch_and_or(&r->cpus[word & CPU_WORD], ~0ULL);
	}
}

static void begin_wait(struct task_struct *p, struct thread *t, struct vm *v, __s32 own, __u64 now)
{
	__u32 class = t->class & 1, word = word_at(t->vm);
	struct stay *host = stay_at(ANY_CPU, t->vm), *here;
	__u64 bit = bit_of(t->vm);
	struct cpu *c;

	t->waits = true;
	t->own = own;
	t->waits_since = now;
	if (host && !waits(v))
		host->served_at = now;
	if (__sync_fetch_and_add(&v->waits[class], 1) == 0 && class == CRITICAL)
		v->critical_since = now;
	if (own == ANY_CPU) {
		if (__sync_fetch_and_add(&v->shared[class], 1) == 0)
			__sync_fetch_and_or(&shared[class][word], bit);
		add_reach(p, t);
		return;
	}
	c = cpu_at(own);
	if (!c || c->own[class][word] & bit)
		return;
	here = stay_at(own, t->vm);
	if (here && !(c->own[1 - class][word] & bit))
		here->served_at = now;
	c->own[class][word] |= bit;
}

static void end_wait(struct thread *t, __u64 now)
{
	__u32 class = t->class & 1, word = word_at(t->vm);
	struct vm *v = vm_at(t->vm);

	if (!t->waits)
		return;
	t->waits = false;
	if (!v)
		return;
	if (__sync_fetch_and_add(&v->waits[class], -1) > 1 && class == CRITICAL)
		v->critical_since = now;
	if (t->own != ANY_CPU || __sync_fetch_and_add(&v->shared[class], -1) != 1)
		return;
	__sync_fetch_and_and(&shared[class][word], ~bit_of(t->vm));
	if (__sync_fetch_and_add(&v->shared[class], 0)) /* somebody has come meanwhile; arm64 may do a mere read before the line above */
		__sync_fetch_and_or(&shared[class][word], bit_of(t->vm));
	if (t->narrow && !v->shared[1 - class])
		forget_reach(v, t->vm);
}

static bool take_own(struct cpu *c, __s32 cpu, __u32 vm, __u32 class)
{
	__u64 queue = queue_of(cpu, vm, class);
	bool taken = take_from(queue);

	if (!scx_bpf_dsq_nr_queued(queue))
		c->own[class & 1][word_at(vm)] &= ~bit_of(vm);
	return taken;
}

static bool move_here(struct bpf_iter_scx_dsq *waiting, struct task_struct *p)
{
	if (scx_bpf_dsq_move)
		return scx_bpf_dsq_move(waiting, p, SCX_DSQ_LOCAL, 0);
	return scx_bpf_dispatch_from_dsq ? scx_bpf_dispatch_from_dsq(waiting, p, SCX_DSQ_LOCAL, 0) : false;
}

/* Whether what this CPU's cache has of it may still be of use. */
static bool ran_near(struct task_struct *p, __s32 cpu)
{
	__u32 last = scx_bpf_task_cpu(p);

	return options.cache_of[last & (MAX_CPUS - 1)] == options.cache_of[cpu & (MAX_CPUS - 1)];
}

/* Of those that came first one that last ran near; none if the first of all has waited so long that it may go anywhere. */
part int take_near(__s32 cpu, __u64 queue, __u64 now)
{
	struct bpf_iter_scx_dsq waiting;
	struct task_struct *p;
	bool taken = false;
	__u32 looked_at = zero;

	bpf_iter_scx_dsq_new(&waiting, queue, 0);
	while (looked_at < LOOKED_AT_THREADS && (p = bpf_iter_scx_dsq_next(&waiting))) {
		struct thread *t = thread_of(p);

		if (!looked_at++ && t && before(t->waits_since + options.far_ns, now))
			break;
		if (!ran_near(p, cpu) || !bpf_cpumask_test_cpu(cpu, scx_of(p)->cpus_ptr))
			continue;
		taken = move_here(&waiting, p);
		break;
	}
	bpf_iter_scx_dsq_destroy(&waiting);
	return taken;
}

static bool take_shared(__s32 cpu, __u32 vm, __u32 class)
{
	__u64 queue = queue_of(ANY_CPU, vm, class);
	struct vm *v = vm_at(vm);
	bool taken;

	if (!v)
		return false;
	if (class != CRITICAL)
		return (options.caches > 1 && take_near(cpu, queue, bpf_ktime_get_ns())) || take_from(queue);
	__sync_fetch_and_add(&v->taking, 1);
	taken = take_from(queue);
	__sync_fetch_and_add(&v->taking, -1);
	return taken;
}

/* Threads of this CPU and those of all, if both wait, in turn. */
part int take(__s32 cpu, __u32 vm, __u32 class)
{
	struct cpu *c = cpu_at(cpu);
	bool own, any;

	if (!c)
		return false;
	class &= 1;
	own = c->own[class][word_at(vm)] & bit_of(vm);
	any = shared[class][word_at(vm)] & bit_of(vm);
	if (own && any && c->turns++ & 1 && take_shared(cpu, vm, class))
		return true;
	if (own && take_own(c, cpu, vm, class))
		return true;
	return any && take_shared(cpu, vm, class);
}

/* When the first of a queue began to wait; 0 if nobody does. */
part __u64 head_since(__u64 queue)
{
	struct bpf_iter_scx_dsq waiting;
	struct task_struct *p;
	__u64 since = 0;

	bpf_iter_scx_dsq_new(&waiting, queue, 0);
	p = bpf_iter_scx_dsq_next(&waiting);
	if (p) {
		struct thread *t = thread_of(p);

		if (t)
			since = t->waits_since;
	}
	bpf_iter_scx_dsq_destroy(&waiting);
	return since;
}

/* Of the 64 VMs of a word those with threads of a class that wait for this CPU only, and have not been tried in vain. */
static __u64 own_bits(const struct cpu *c, __u32 class, __u32 word)
{
	return c->own[class][word] & ~c->tried[class][word];
}

/* The same of those that wait for any CPU. */
static __u64 shared_bits(const struct cpu *c, __u32 class, __u32 word)
{
	return shared[class][word] & ~c->tried[class][word];
}

static bool may_wait(const struct cpu *c, __u32 vm)
{
	__u32 word = word_at(vm);
	__u64 own = own_bits(c, CRITICAL, word) | own_bits(c, OTHER, word);

	return (own | shared_bits(c, CRITICAL, word) | shared_bits(c, OTHER, word)) & bit_of(vm);
}

static __u64 without_kernel(__u64 bits, __u32 word)
{
	return word ? bits : bits & ~bit_of(KERNEL);
}

static bool kernel_waits(const struct cpu *c)
{
	return (c->own[CRITICAL][0] | shared[CRITICAL][0]) & bit_of(KERNEL);
}

#endif
