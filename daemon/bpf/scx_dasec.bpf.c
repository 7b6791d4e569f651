// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler for hosts of VMs, in two levels. A VM is a cgroup at a fixed depth; a group above that depth is one for its own
 * threads; user threads of the root are one more; kernel threads go first, but not for ever, and are not charged.
 *
 * First the VM: of those with threads that wait for this CPU the one that has had least (scx_share.h) by its weight and those of the
 * groups above it (scx_tree.h). The choice is made when the CPU is free, with what each has had by then, so it does not matter how
 * many threads a VM has, or when they came. Then the thread: the critical first (scx_critical.h), first come, first served (scx_queue.h).
 *
 * Before that, VMs whose critical threads wait, if they are in their share: not more than the debt ahead of the VM that is
 * furthest behind of those that wait. Of several the one whose critical threads have waited longest. After them those up to two
 * debts ahead whose critical threads are modest: they use less than half of what is due to it (scx_share.h). Such a thread preempts
 * others when it wakes up.
 */
#include "scx_counts.h"
#include "scx_idle.h"
#include "scx_meet.h"
#include "scx_tree.h"

char LICENSE[] SEC("license") = "GPL";

#define LOOKED_AT_CPUS 16 /* before a thread that would preempt gives up */
#define KERNEL_FIRST_NS 20000000ULL /* then one of a VM's that waits has a slice, as beside any that compute */

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

/* Whether it may take the CPU from this one: it is in its share, if need be after what lapses. */
part int can_spare(__s32 cpu, __u32 low_vm, __u32 vm, __u64 debt, __u64 now)
{
	struct vm *low = vm_at(low_vm), *v = vm_at(vm);

	if (!low)
		return false;
	if (!v)
		return false;
	if (before(low->time + debt, v->time))
		lapse(cpu, low_vm, vm, now);
	return !before(low->time + debt, v->time);
}

/* Whether its critical threads may have the CPU: it runs another class, of a VM and beside a rival that can spare it. */
part int may_preempt(__u32 vm, __u64 debt, __s32 cpu, __u64 now)
{
	struct cpu *c = cpu_at(cpu);
	struct vm *rival;

	if (!c)
		return false;
	if (c->class != OTHER || c->kicked)
		return false;
	if (vm == KERNEL)
		return true;
	if (!can_spare(cpu, c->vm, vm, debt, now))
		return false;
	rival = c->rival && c->rival != vm ? vm_at(c->rival) : NULL;
	if (!rival)
		return true;
	return !waits(rival) || can_spare(cpu, c->rival, vm, debt, now);
}

SEC("struct_ops/dasec_select_cpu")
__s32 BPF_PROG(dasec_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	struct thread *t;
	bool idle = false;
	__s32 cpu;

	if (are_alike()) {
		cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, 0, &idle);
		if (!idle)
			return cpu;
		t = thread_of(p);
	} else {
		t = thread_of(p);
		cpu = pick_near(p, t ? t->class : OTHER, prev_cpu);
		if (cpu < 0)
			return prev_cpu;
	}
	if (t) {
		t->own = ANY_CPU;
		insert(p, SCX_DSQ_LOCAL, classify(p, t, bpf_ktime_get_ns()), 0);
	}
	return cpu;
}

/*
 * On its way out a CPU still wakes who waits for it to go. What it would kick others with, an interrupt of its own, is lost then, and
 * with it all such interrupts for as long as the kernel believes that one is under way: also those without which BPF's memory cannot
 * be freed. Whoever waits is seen at the next end of a slice instead.
 */
static bool may_kick(void)
{
	struct cpu *here = cpu_at(bpf_get_smp_processor_id());

	return here && !here->away;
}

static void kick(__s32 cpu)
{
	struct cpu *c = cpu_at(cpu);

	if (!may_kick())
		return;
	if (c)
		c->kicked = true;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* Of some CPUs from the last one of the thread on, preempt the one whose VM is ahead most, and among equals that last one. */
static __noinline void preempt_one(struct task_struct *p, __u32 vm, __u64 debt, __u64 now)
{
	__s32 best = -1, last = scx_bpf_task_cpu(p);
	__u32 number;
	__u64 most = 0;

	for (number = zero; number < LOOKED_AT_CPUS && number < options.cpus && may_go_on(); number++) {
		__s32 cpu = last + number;
		struct vm *running;
		struct cpu *c;

		if (cpu >= (__s32)options.cpus)
			cpu -= options.cpus;
		c = cpu_at(cpu);
		if (!c)
			continue;
		if (!may_preempt(vm, debt, cpu, now) || !bpf_cpumask_test_cpu(cpu, scx_of(p)->cpus_ptr))
			continue;
		running = vm_at(c->vm);
		if (!running)
			continue;
		if (best < 0 || before(most, running->time)) {
			best = cpu;
			most = running->time;
		}
	}
	if (best >= 0)
		kick(best);
}

SEC("struct_ops/dasec_enqueue")
void BPF_PROG(dasec_enqueue, struct task_struct *p, __u64 enq_flags)
{
	struct thread *t = thread_of(p);
	struct vm *v = t ? vm_at(t->vm) : NULL;
	__u64 now = bpf_ktime_get_ns(), slice;
	__s32 own = ANY_CPU, idle;

	if (!t) {
		insert(p, SCX_DSQ_GLOBAL, options.slice_ns, enq_flags);
		return;
	}
	if (!v) {
		insert(p, SCX_DSQ_GLOBAL, options.slice_ns, enq_flags);
		return;
	}
	end_wait(t, now); /* it has been moved while it waited */
	if (is_pinned(p))
		own = scx_bpf_task_cpu(p);
	slice = classify(p, t, now);
	begin_wait(p, t, v, own, now);
	insert(p, queue_of(own, t->vm, t->class), slice, enq_flags);
	if (own != ANY_CPU) {
		if (t->class == CRITICAL && may_preempt(t->vm, debt_of(v), own, now))
			kick(own);
		return;
	}
	if (!may_kick())
		return;
	idle = are_alike() ? scx_bpf_pick_idle_cpu(scx_of(p)->cpus_ptr, 0) : pick_near(p, t->class, scx_bpf_task_cpu(p));
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	else if (t->class == CRITICAL)
		preempt_one(p, t->vm, debt_or_more(v, now), now);
}

/* What runs goes on, with a new slice. */
static void keep(struct task_struct *prev, struct thread *t, struct vm *v, struct cpu *c, __u64 slice, __u64 now)
{
	struct stay *host = stay_at(ANY_CPU, t->vm);

	((struct task_struct___scx *)prev)->scx.slice = slice;
	charge_ahead(t, v, slice);
	if (host)
		host->served_at = now;
	c->class = t->class;
	t->modest = t->class == CRITICAL && is_modest(v, now);
}

/*
 * What no share may take from a VM: a turn at a CPU that it waits for. And a thread that would wait so long that the kernel takes us
 * for dead has a touch of it: it is preempted as soon as it runs.
 */
part int serve_forgotten(__s32 cpu, __u32 vm, __u64 now)
{
	struct cpu *c = cpu_at(cpu);
	struct stay *here = stay_at(cpu, vm), *host = stay_at(ANY_CPU, vm);
	__u64 bit = bit_of(vm), queue, since;
	__u32 word = word_at(vm), class;
	bool own, any;

	if (!c)
		return false;
	if (!here)
		return false;
	if (!host)
		return false;
	class = c->looks & 1;
	own = (c->own[CRITICAL][word] | c->own[OTHER][word]) & bit;
	any = (shared[CRITICAL][word] | shared[OTHER][word]) & bit;
	if ((own && before(here->served_at + options.turn_ns, now)) ||
	    (any && before(host->served_at + options.turn_ns, now)))
		return take(cpu, vm, CRITICAL) || take(cpu, vm, OTHER);
	own = c->own[class][word] & bit;
	any = shared[class][word] & bit;
	queue = queue_of(c->looks & 2 ? cpu : ANY_CPU, vm, class);
	since = (c->looks & 2 ? own : any) ? head_since(queue) : 0;
	if (since && before(since + options.touch_ns, now) && take_from(queue)) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return true;
	}
	if (vm <= c->looked_at)
		c->looks++;
	c->looked_at = vm;
	return false;
}

#define AFTER_ALL 62 /* the bit of a time that no clock comes to */

/* As before(), without a branch: in a loop each of them is two ways for the verifier. */
static __u64 is_before(__u64 a, __u64 b)
{
	return (a - b) >> 63;
}

part int may_be_ahead(__u32 vm, __u64 least, __u64 now)
{
	struct vm *v = vm_at(vm);

	return v && is_modest(v, now) && !before(least + AS_FAR * debt_of(v), v->time);
}

static bool is_in_share(__u32 vm, __u64 least)
{
	const struct vm *v = vm_at(vm);

	return v && !before(least + debt_of(v), v->time);
}

/* Whether another thread of the VM has waited so long that its critical ones have to wait for it. */
static bool is_overdue(struct cpu *c, __s32 cpu, __u32 vm, __u64 now)
{
	__u32 word = word_at(vm);
	__u64 since = 0;

	if (c->own[OTHER][word] & bit_of(vm))
		since = head_since(queue_of(cpu, vm, OTHER));
	else if (shared[OTHER][word] & bit_of(vm))
		since = head_since(queue_of(ANY_CPU, vm, OTHER));
	return since && before(since + options.overdue_ns, now);
}

/*
 * Of the VMs in their share whose critical threads wait here the one whose wait has begun first; else of those that are modest; or 0.
 * Not one whose threads are all being taken: should that fail, whoever finds nobody else tries it (choose()).
 */
part __u32 first_critical(__s32 cpu, __u32 running, __u64 least, __u64 now)
{
	struct cpu *c = cpu_at(cpu);
	__u64 since = 0, due = due_time();
	__u32 word, found = 0;

	if (!c)
		return 0;
	for (word = zero; word < words_used && word < WORDS && may_go_on(); word++) {
		__u64 own = own_bits(c, CRITICAL, word);
		__u64 left = without_kernel(own | shared_bits(c, CRITICAL, word), word);

		while (left && may_go_on()) {
			__u32 vm = word << 6 | lowest(left);
			struct vm *v = vm_at(vm);
			__u64 far, waited;

			left &= left - 1;
			if (!v)
				continue;
			far = is_before(least + debt_within(due, v), v->time);
			waited = v->critical_since + (far << AFTER_ALL);
			if (found && !before(waited, since))
				continue;
			if (!(own & bit_of(vm)) && (v->shared[CRITICAL] <= v->taking || !reaches_cpu(vm, cpu)))
				continue;
			if (far && !may_be_ahead(vm, least, now))
				continue;
			if (own & bit_of(vm) && before(least, v->time) && before(least + debt_here(cpu, vm, running), v->time))
				continue;
			found = vm;
			since = waited;
		}
	}
	return found;
}

enum choice { TAKEN, KEPT, IN_VAIN };

struct running {
	__u32 vm; /* 0: nobody who goes on, or a kernel thread */
	__u32 class;
	__u64 time;
	__u64 debt; /* if it is critical */
};

part __u32 choose(__s32 cpu, struct survey *s, struct running *r, __u64 now)
{
	struct cpu *c = cpu_at(cpu);
	__u64 least;
	__u32 vm;

	if (!c)
		return IN_VAIN;
	if (!s)
		return IN_VAIN;
	if (!r)
		return IN_VAIN;
	least = r->vm && before(r->time, s->least) ? r->time : s->least;
	vm = first_critical(cpu, r->vm, least, now);
	if (vm) {
		if (is_in_share(vm, least) && is_overdue(c, cpu, vm, now) && take(cpu, vm, OTHER))
			return TAKEN;
		if (take(cpu, vm, CRITICAL))
			return TAKEN;
		c->tried[CRITICAL][word_at(vm)] |= bit_of(vm);
		return IN_VAIN; /* its others may be allowed here */
	} else {
		if (r->vm && r->class == CRITICAL && !before(s->least + r->debt, r->time))
			return KEPT;
		vm = s->least_vm;
		if (r->vm && r->vm != vm && !before(s->least, r->time))
			return KEPT;
		if (take(cpu, vm, OTHER) || take(cpu, vm, CRITICAL))
			return TAKEN;
	}
	c->tried[CRITICAL][word_at(vm)] |= bit_of(vm);
	c->tried[OTHER][word_at(vm)] |= bit_of(vm);
	return IN_VAIN;
}

/* In the order of shares. A VM is passed over if its threads turn out not to be allowed here: others that wait are. */
part __u32 choose_among(__s32 cpu, struct survey *s, struct running *r, __u64 now)
{
	struct cpu *c = cpu_at(cpu);
	__u32 choice = IN_VAIN, times;
	bool in_vain = false;

	if (!c)
		return IN_VAIN;
	if (!s)
		return IN_VAIN;
	if (!r)
		return IN_VAIN;
	for (times = zero; s->least_vm && times < MAX_VMS && may_go_on(); times++) {
		choice = choose(cpu, s, r, now);
		if (choice != IN_VAIN)
			break;
		in_vain = true;
		if (!may_wait(c, s->least_vm)) /* without another VM the same one is furthest behind */
			look_around(cpu, s, r->vm, now);
	}
	if (in_vain)
		__builtin_memset(c->tried, 0, sizeof(c->tried));
	return choice;
}

SEC("struct_ops/dasec_dispatch")
void BPF_PROG(dasec_dispatch, __s32 cpu, struct task_struct *prev)
{
	__u64 now = bpf_ktime_get_ns(), slice = 0;
	struct cpu *c = cpu_at(cpu);
	struct running running = {};
	struct thread *t = NULL;
	bool kernel, is_first;
	struct vm *v = NULL;
	struct survey s;

	if (!c)
		return;
	c->kicked = c->away = false;
	kernel = kernel_waits(c);
	is_first = !c->only_kernel_since || before(now, c->only_kernel_since + KERNEL_FIRST_NS);
	if (kernel && is_first && take(cpu, KERNEL, CRITICAL))
		return;
	if (prev && scx_of(prev)->scx.flags & SCX_TASK_QUEUED)
		t = thread_of(prev);
	if (t) {
		charge(prev, t);
		give_back(t);
		slice = classify(prev, t, now);
		v = vm_at(t->vm);
		if (v) {
			running.vm = t->vm;
			running.class = t->class;
		}
	}
	settle(cpu, &s, running.vm, now);
	if (v) {
		running.time = v->time;
		if (t->class == CRITICAL)
			running.debt = t->home == ANY_CPU && is_modest(v, now) ? AS_FAR * debt_of(v) : debt_here(cpu, t->vm, t->vm);
	}
	c->rival = s.least_vm;
	if (s.least_vm) {
		if (serve_forgotten(cpu, s.next_vm, now))
			return;
		if (choose_among(cpu, &s, &running, now) == TAKEN)
			return;
	}
	if (kernel && !is_first && take(cpu, KERNEL, CRITICAL))
		return;
	if (!t) {
		c->only_kernel_since = 0;
		return;
	}
	if (v)
		keep(prev, t, v, c, slice, now);
}

SEC("struct_ops/dasec_running")
void BPF_PROG(dasec_running, struct task_struct *p)
{
	struct cpu *c = cpu_at(scx_bpf_task_cpu(p));
	struct thread *t = thread_of(p);
	__u64 now = bpf_ktime_get_ns();
	struct stay *stay;
	struct vm *v;

	if (!t)
		return;
	if (!c)
		return;
	end_wait(t, now);
	count_dispatch(t, now);
	t->charged = p->se.sum_exec_runtime;
	c->vm = t->vm;
	c->class = t->class;
	c->confined = t->home != ANY_CPU;
	c->kicked = false;
	if (t->vm != KERNEL)
		c->only_kernel_since = 0;
	else if (!c->only_kernel_since)
		c->only_kernel_since = now;
	v = vm_at(t->vm);
	stay = stay_at(ANY_CPU, t->vm);
	if (!v)
		return;
	if (!stay)
		return;
	stay->served_at = now;
	charge_ahead(t, v, scx_of(p)->scx.slice);
	t->modest = t->class == CRITICAL && is_modest(v, now);
	if (t->own == ANY_CPU)
		return;
	stay = stay_at(t->own, t->vm);
	if (stay)
		stay->served_at = now;
}

SEC("struct_ops/dasec_stopping")
void BPF_PROG(dasec_stopping, struct task_struct *p, bool runnable)
{
	struct cpu *c = cpu_at(scx_bpf_task_cpu(p));
	struct thread *t = thread_of(p);

	if (t) {
		charge(p, t);
		give_back(t);
		if (runnable)
			count_preemption(t);
	}
	if (c)
		c->class = NOBODY;
}

SEC("struct_ops/dasec_tick")
void BPF_PROG(dasec_tick, struct task_struct *p)
{
	struct thread *t = thread_of(p);

	if (t)
		charge(p, t);
	weigh_anew(bpf_ktime_get_ns());
}

SEC("struct_ops/dasec_runnable")
void BPF_PROG(dasec_runnable, struct task_struct *p, __u64 enq_flags)
{
	struct thread *t = thread_of(p);
	__u64 now = bpf_ktime_get_ns();
	struct stay *stay;
	struct vm *v;

	if (!t || t->vm == KERNEL)
		return;
	v = vm_at(t->vm);
	stay = stay_at(ANY_CPU, t->vm);
	if (v && stay && __sync_fetch_and_add(&v->threads, 1) == 0)
		begin_activity(v, stay, now);
	t->home = scx_of(p)->nr_cpus_allowed == 1 ? bpf_cpumask_first(scx_of(p)->cpus_ptr) : ANY_CPU;
	stay = t->home == ANY_CPU ? NULL : stay_at(t->home, t->vm);
	if (v && stay && __sync_fetch_and_add(&stay->threads, 1) == 0)
		begin_stay(stay, v, 1, now);
	if (enq_flags & SCX_ENQ_WAKEUP)
		link_waker(p, t);
}

SEC("struct_ops/dasec_quiescent")
void BPF_PROG(dasec_quiescent, struct task_struct *p, __u64 deq_flags)
{
	struct thread *t = thread_of(p);
	__u64 now = bpf_ktime_get_ns();
	struct stay *stay;
	struct vm *v;

	if (!t)
		return;
	end_wait(t, now);
	if (deq_flags & SCX_DEQ_SLEEP)
		count_sleep(t, now);
	if (t->vm == KERNEL)
		return;
	v = vm_at(t->vm);
	stay = stay_at(ANY_CPU, t->vm);
	if (v && stay && v->threads && __sync_fetch_and_add(&v->threads, -1) == 1)
		end_activity(v, stay, now);
	stay = t->home == ANY_CPU ? NULL : stay_at(t->home, t->vm);
	if (stay && stay->threads && __sync_fetch_and_add(&stay->threads, -1) == 1)
		stay->slept_at = now;
	if (deq_flags & SCX_DEQ_SLEEP)
		judge(t, v);
}

/* One may be left of a try that ran out of memory. */
static __s32 make_queue(__u64 queue)
{
	__s32 error = scx_bpf_create_dsq(queue, -1);

	return error == -EEXIST ? 0 : error;
}

/* The queues of a slot stay when its VM goes: a thread that is about to end may still wait in one. */
static __noinline __s32 make_queues(__u32 vm)
{
	struct vm *v = vm_at(vm);
	struct bpf_iter_num numbers;
	__s32 error = 0;
	int *number;

	if (!v)
		return -ENOMEM;
	if (v->has_queues)
		return 0;
	bpf_iter_num_new(&numbers, 0, options.cpus + 1);
	while (!error && (number = bpf_iter_num_next(&numbers))) {
		error = make_queue(queue_of(*number - 1, vm, CRITICAL));
		if (!error)
			error = make_queue(queue_of(*number - 1, vm, OTHER));
	}
	bpf_iter_num_destroy(&numbers);
	v->has_queues = !error;
	return error;
}

/*
 * The least V of VMs that run or wait: one that begins is not owed what they have had. The most without any, or it would be owed what
 * others had before. Groups above do not count: one of them makes the VM, so it always runs, but is mostly idle and behind.
 */
static __noinline __u64 time_to_begin_with(void)
{
	__u64 least = 0, most = EPOCH;
	struct bpf_iter_num slots;
	int *slot;

	bpf_iter_num_new(&slots, REST + 1, MAX_VMS);
	while ((slot = bpf_iter_num_next(&slots))) {
		struct vm *v = vm_at(*slot);

		if (!v || !v->weight || v->level != options.vm_level)
			continue;
		if (v->threads && (!least || before(v->time, least)))
			least = v->time;
		if (before(most, v->time))
			most = v->time;
	}
	bpf_iter_num_destroy(&slots);
	return least ? least : most;
}

SEC("struct_ops/dasec_cgroup_init")
__s32 BPF_PROG(dasec_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	__u64 id = cgrp->kn->id;
	struct bpf_iter_num slots;
	__u32 above;
	int *slot;

	if (!cgrp->level || cgrp->level > (int)options.vm_level)
		return 0;
	above = cgrp->level > 1 ? slot_at(cgrp, cgrp->level - 1) : 0;
	if (cgrp->level > 1 && !above)
		return 0; /* as that one, it shares with the rest */
	bpf_iter_num_new(&slots, REST + 1, MAX_VMS);
	while ((slot = bpf_iter_num_next(&slots))) {
		__u32 at = *slot;
		struct stay *host = stay_at(ANY_CPU, at);
		struct vm *v = vm_at(at);

		if (!host)
			continue;
		if (!v || v->weight)
			continue;
		if (make_queues(at)) /* it shares with the rest */
			break;
		v->time = time_to_begin_with();
		v->used_ns = v->critical_ns = v->chain = v->modest_from = 0;
		v->weight = args->weight;
		v->cgroup = id;
		place(v, cgrp->level, above);
		host->rested_at = bpf_ktime_get_ns();
		if (words_used <= word_at(at))
			words_used = word_at(at) + 1;
		if (bpf_map_update_elem(&vm_of_id, &id, &at, BPF_ANY)) /* as above */
			v->weight = 0;
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

	if (!v)
		return;
	v->weight = weight; /* it counts within 10 ms */
	v->modest_from = 0;
}

SEC("struct_ops/dasec_init_task")
__s32 BPF_PROG(dasec_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return -ENOMEM;
	t->charged = p->se.sum_exec_runtime;
	t->own = t->home = ANY_CPU;
	t->vm = scx_of(p)->flags & PF_KTHREAD ? 0 : slot_of(args->cgroup->kn->id);
	return 0;
}

/* Another class has it from now on, or we are put out. */
SEC("struct_ops/dasec_disable")
void BPF_PROG(dasec_disable, struct task_struct *p)
{
	struct thread *t = thread_of(p);

	if (t)
		count_departure(t);
}

static void count_cpus(__u32 going)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();

	online_cpus = bpf_cpumask_weight(online) - going;
	scx_bpf_put_cpumask(online);
}

/*
 * Without these two the kernel would put us out whenever a CPU comes or goes. While it does so, threads that are born belong to its
 * own scheduler, before all that are still ours: one that computes stops the host (docs/decisions/0076-hotplug.md).
 */
SEC("struct_ops/dasec_cpu_online")
void BPF_PROG(dasec_cpu_online, __s32 cpu)
{
	struct cpu *c = cpu_at(cpu);

	count_cpus(0);
	if (c)
		c->away = false;
}

/* It still counts as online. Those that waited for it alone have been taken away by the kernel. */
SEC("struct_ops/dasec_cpu_offline")
void BPF_PROG(dasec_cpu_offline, __s32 cpu)
{
	struct cpu *c = cpu_at(cpu);

	count_cpus(1);
	if (c)
		c->away = true;
}

SEC("struct_ops/dasec_init")
__s32 BPF_PROG(dasec_init)
{
	struct vm *rest = vm_at(REST);
	struct bpf_iter_num numbers;
	__s32 error;
	int *number;

	count_cpus(0);
	if (rest) {
		rest->weight = NEUTRAL_VM;
		place(rest, 0, 0);
		rest->time = EPOCH;
	}
	bpf_iter_num_new(&numbers, 0, options.cpus);
	while ((number = bpf_iter_num_next(&numbers))) {
		struct cpu *c = cpu_at(*number);

		if (c)
			c->class = NOBODY;
	}
	bpf_iter_num_destroy(&numbers);
	error = make_places();
	if (!error)
		error = make_queues(KERNEL);
	return error ? error : make_queues(REST);
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

/* Threads that a scheduling class above us has taken the CPU from may run elsewhere; else they would wait for it. */
SEC("struct_ops/dasec_cpu_release")
void BPF_PROG(dasec_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	struct cpu *c = cpu_at(cpu);

	if (c)
		c->releasing = true;
	scx_bpf_reenqueue_local();
	if (c)
		c->releasing = false;
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
	.cpu_online = (void *)dasec_cpu_online, \
	.cpu_offline = (void *)dasec_cpu_offline, \
	.cpu_release = (void *)dasec_cpu_release, \
	.disable = (void *)dasec_disable, \
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
	.flags = SCX_OPS_ENQ_EXITING,
};

/* Those of policy SCHED_EXT only, which run when the kernel's own scheduler has nobody to run on a CPU. */
SEC(".struct_ops")
struct sched_ext_ops dasec_partial_ops = {
	DASEC_OPERATIONS
	.flags = SCX_OPS_SWITCH_PARTIAL | SCX_OPS_ENQ_EXITING,
};
