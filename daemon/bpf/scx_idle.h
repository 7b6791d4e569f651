/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which idle CPU a thread is given that wakes up on a host whose CPUs are not alike to it: those near have the last-level cache of
 * its last one; where capacities differ, those of the largest are near to critical threads, whatever cache they have. The
 * order is that of scx_select_cpu_dfl() from 6.13 on: the last CPU, one near, one of the node, any, first of idle cores.
 *
 * Where all are alike the kernel's own choice does that, for less.
 */
#ifndef DASEC_SCX_IDLE_H
#define DASEC_SCX_IDLE_H

#include "scx_state.h"

#define LARGEST MAX_CPUS       /* the place behind those of caches, */
#define NODES (MAX_CPUS + 1) /* and the first of those of nodes */

typedef struct bpf_cpumask cpus_reference; /* clang 14 drops the kptr mark from a pointer to a struct */

struct place {
	cpus_reference __kptr *cpus;
};

/* By the number of a cache; LARGEST; and from NODES on by that of a node. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NODES + MAX_CPUS);
	__type(key, __u32);
	__type(value, struct place);
} places SEC(".maps");

/* For each CPU, to choose among. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, __u32);
	__type(value, struct place);
} choices SEC(".maps");

static struct place *place_at(__u32 number)
{
	return bpf_map_lookup_elem(&places, &number);
}

static struct place *choice_at(__u32 cpu)
{
	return bpf_map_lookup_elem(&choices, &cpu);
}

static __u32 node_place(__u32 cpu)
{
	return NODES + options.node_of[cpu & (MAX_CPUS - 1)];
}

static bool are_alike(void)
{
	return options.caches < 2 && !options.is_hybrid;
}

static __s32 make_mask(struct place *at)
{
	struct bpf_cpumask *mask = at ? bpf_cpumask_create() : NULL;

	if (!mask)
		return -ENOMEM;
	mask = bpf_kptr_xchg(&at->cpus, mask);
	if (mask)
		bpf_cpumask_release(mask);
	return 0;
}

static void add_to(struct place *at, __u32 cpu)
{
	struct bpf_cpumask *mask;

	if (!at)
		return;
	bpf_rcu_read_lock();
	mask = at->cpus;
	if (mask)
		bpf_cpumask_set_cpu(cpu, mask);
	bpf_rcu_read_unlock();
}

static __noinline __s32 make_places(void)
{
	struct bpf_iter_num numbers;
	__s32 error = 0;
	int *number;

	if (are_alike())
		return 0;
	error = make_mask(place_at(LARGEST));
	bpf_iter_num_new(&numbers, 0, options.cpus);
	while (!error && (number = bpf_iter_num_next(&numbers))) {
		__u32 cpu = *number & (MAX_CPUS - 1);
		__u32 cache = options.cache_of[cpu], node = node_place(cpu);

		error = make_mask(choice_at(cpu));
		if (!error && cache == cpu)
			error = make_mask(place_at(cache));
		if (!error && node == NODES + cpu)
			error = make_mask(place_at(node));
		add_to(place_at(cache), cpu);
		add_to(place_at(node), cpu);
		if (options.is_largest[cpu])
			add_to(place_at(LARGEST), cpu);
	}
	bpf_iter_num_destroy(&numbers);
	return error;
}

/* Of these CPUs one that is idle and no longer counts as such; negative if none is. */
static __s32 pick_among(const struct task_struct *p, __u32 place, __u64 flags)
{
	struct place *from = place_at(place), *choice = choice_at(bpf_get_smp_processor_id());
	struct bpf_cpumask *near, *chosen;

	if (!from)
		return -1;
	if (!choice)
		return -1;
	near = from->cpus;
	chosen = choice->cpus;
	if (!near)
		return -1;
	if (!chosen)
		return -1;
	bpf_cpumask_and(chosen, (const struct cpumask *)near, scx_of(p)->cpus_ptr);
	return scx_bpf_pick_idle_cpu((const struct cpumask *)chosen, flags);
}

static __s32 pick_only(const struct task_struct *p, __s32 cpu, __u64 flags)
{
	struct place *choice = choice_at(bpf_get_smp_processor_id());
	struct bpf_cpumask *chosen;

	if (!choice)
		return -1;
	chosen = choice->cpus;
	if (!chosen || !bpf_cpumask_test_cpu(cpu, scx_of(p)->cpus_ptr))
		return -1;
	bpf_cpumask_clear(chosen);
	bpf_cpumask_set_cpu(cpu, chosen);
	return scx_bpf_pick_idle_cpu((const struct cpumask *)chosen, flags);
}

static __s32 pick_near(const struct task_struct *p, __u32 class, __s32 last)
{
	bool wants_largest = options.is_hybrid && class == CRITICAL;
	__u32 here = last & (MAX_CPUS - 1), place = wants_largest ? LARGEST : options.cache_of[here];
	bool is_near = !wants_largest || options.is_largest[here];
	__s32 cpu = is_near ? pick_only(p, here, SCX_PICK_IDLE_CORE) : -1;

	if (cpu < 0)
		cpu = pick_among(p, place, SCX_PICK_IDLE_CORE);
	if (cpu < 0 && options.nodes)
		cpu = pick_among(p, node_place(here), SCX_PICK_IDLE_CORE);
	if (cpu < 0)
		cpu = scx_bpf_pick_idle_cpu(scx_of(p)->cpus_ptr, SCX_PICK_IDLE_CORE);
	if (cpu < 0 && is_near)
		cpu = pick_only(p, here, 0);
	if (cpu < 0)
		cpu = pick_among(p, place, 0);
	if (cpu < 0 && options.nodes)
		cpu = pick_among(p, node_place(here), 0);
	if (cpu < 0)
		cpu = scx_bpf_pick_idle_cpu(scx_of(p)->cpus_ptr, 0);
	return cpu;
}

#endif
