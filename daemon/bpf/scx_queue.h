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

/* A BPF program has migration disabled for its caller, so that says nothing of the caller itself. */
static bool is_pinned(struct task_struct *p)
{
	const struct task_struct___scx *q = scx_of(p);
	int disabled = q->migration_disabled;

	if (q->nr_cpus_allowed == 1 || disabled > 1)
		return true;
	return disabled == 1 && bpf_get_current_task_btf() != p;
}

part __u32 lowest(__u64 bits)
{
	__u32 at = 0;

	if (!(__u32)bits) {
		at += 32;
		bits >>= 32;
	}
	if (!(bits & 0xffff)) {
		at += 16;
		bits >>= 16;
	}
	if (!(bits & 0xff)) {
		at += 8;
		bits >>= 8;
	}
	if (!(bits & 0xf)) {
		at += 4;
		bits >>= 4;
	}
	if (!(bits & 3)) {
		at += 2;
		bits >>= 2;
	}
	return at + !(bits & 1);
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
	struct bpf_iter_num words;
	int *number;

	t->narrow = q->nr_cpus_allowed < (int)online_cpus;
	if (!r)
		return;
	bpf_iter_num_new(&words, 0, (options.cpus + 63) / 64);
	while ((number = bpf_iter_num_next(&words))) {
		__u32 word = *number & CPU_WORD;

		if (t->narrow)
			bpf_probe_read_kernel(&bits, sizeof(bits), (void *)(mask + word * sizeof(bits)));
		if (bits & ~r->cpus[word])
			__sync_fetch_and_or(&r->cpus[word], bits);
	}
	bpf_iter_num_destroy(&words);
}

/* Where the last thread that waited was a narrow one. If another has come meanwhile, all CPUs. */
static void forget_reach(const struct vm *v, __u32 vm)
{
	struct reach *r = bpf_map_lookup_elem(&reaches, &vm);
	struct bpf_iter_num words;
	int *number;

	if (!r)
		return;
	bpf_iter_num_new(&words, 0, (options.cpus + 63) / 64);
	while ((number = bpf_iter_num_next(&words))) {
		__u32 word = *number & CPU_WORD;

		__sync_fetch_and_and(&r->cpus[word], 0);
		if (v->shared[CRITICAL] || v->shared[OTHER])
			__sync_fetch_and_or(&r->cpus[word], ~0ULL);
	}
	bpf_iter_num_destroy(&words);
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
	if (t->vm == KERNEL)
		return;
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
	if (!v || t->vm == KERNEL)
		return;
	if (__sync_fetch_and_add(&v->waits[class], -1) > 1 && class == CRITICAL)
		v->critical_since = now;
	if (t->own != ANY_CPU || __sync_fetch_and_add(&v->shared[class], -1) != 1)
		return;
	__sync_fetch_and_and(&shared[class][word], ~bit_of(t->vm));
	if (v->shared[class]) /* somebody has come between the last two lines */
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
	if (own && any && c->turns++ & 1 && take_from(queue_of(ANY_CPU, vm, class)))
		return true;
	if (own && take_own(c, cpu, vm, class))
		return true;
	return any && take_from(queue_of(ANY_CPU, vm, class));
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

/* The next VM, in the order of slots, with threads, or with critical ones, that wait and may run here; 0 after the last one. */
part __u32 next_waiting(__s32 cpu, __u32 after, __u32 critical_only)
{
	struct cpu *c = cpu_at(cpu);
	struct bpf_iter_num words;
	__u32 from = after + 1, found = 0;
	int *number;

	if (!c)
		return 0;
	bpf_iter_num_new(&words, from / 64, words_used);
	while (!found && (number = bpf_iter_num_next(&words))) {
		__u32 word = *number & (WORDS - 1);
		__u64 untried = ~c->tried[CRITICAL][word];
		__u64 own = c->own[CRITICAL][word] & untried, bits = own | (shared[CRITICAL][word] & untried);
		struct bpf_iter_num times;

		if (!critical_only) {
			untried = ~c->tried[OTHER][word];
			own |= c->own[OTHER][word] & untried;
			bits |= own | (shared[OTHER][word] & untried);
		}
		if (word == from / 64)
			bits &= ~0ULL << (from & 63);
		bpf_iter_num_new(&times, 0, 64);
		while (bits && bpf_iter_num_next(&times)) {
			__u32 vm = word << 6 | lowest(bits);

			if (own & bit_of(vm) || reaches_cpu(vm, cpu)) {
				found = vm;
				break;
			}
			bits &= bits - 1;
		}
		bpf_iter_num_destroy(&times);
	}
	bpf_iter_num_destroy(&words);
	return found;
}

#endif
