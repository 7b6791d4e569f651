/* SPDX-License-Identifier: GPL-2.0-only */
/* What scx_dasec knows of threads, VMs and CPUs, and the maps that hold it. */
#ifndef DASEC_SCX_STATE_H
#define DASEC_SCX_STATE_H

#include "edges_state.h"
#include "scx_kernel.h"

#define MAX_CPUS 1024
#define MAX_VMS 1024
#define WORDS (MAX_VMS / 64)

#define KERNEL 0 /* the slot of kernel threads */
#define ANY_CPU (-1)

#define REST 1	 /* the slot of user threads in no group that has one, as of those beyond MAX_VMS */

#define EPOCH (1ULL << 40) /* virtual times start here, so that none wraps */
#define NEUTRAL_VM 100	   /* the kernel's default of cpu.weight */
#define WORTH 64	   /* of a weight of one, where it counts as it is (scx_tree.h) */
#define NEUTRAL_WORTH (NEUTRAL_VM * WORTH)

enum class { CRITICAL, OTHER, NOBODY };

/* Set by the loader, which has the reasons of each (daemon/bpf/scx.py). */
struct options {
	__u32 cpus;
	__u32 vm_level;
	__u64 debt_ns;
	__u64 slice_ns;
	__u64 critical_slice_ns;
	__u64 bucket_ns;
	__u64 overdue_ns;
	__u64 turn_ns;
	__u64 touch_ns;
	__u64 short_ns;
	__u64 endless_ns;
	__u64 far_ns;
	__u64 modest_ns; /* 0: nobody is */
	__u32 bucket_percent;
	__u32 chain_percent;
	__u32 caches; /* last-level ones */
	__u32 is_hybrid; /* capacities differ */
	__u32 nodes; /* 0: there is one, or none is larger than a cache */
	__u32 counts_switches; /* for whoever follows threads (scx_counts.h) */
	__u16 cache_of[MAX_CPUS];
	__u16 node_of[MAX_CPUS];
	__u8 is_largest[MAX_CPUS]; /* of capacity */
};

const volatile struct options options;

struct thread {
	__u32 vm;
	__u32 class;
	__s32 own;	   /* the only CPU where it may run, or ANY_CPU */
	__s32 home;	   /* the same, of its mask alone: also while migration is disabled, or it does not wait */
	bool waits;	   /* in a queue of its VM */
	bool narrow;	   /* may not run on all CPUs */
	bool modest;	   /* what it uses is held against its VM (scx_share.h) */
	bool critical;
	bool chained;	   /* in this burst: woken by somebody, or woke a sibling */
	__u64 waits_since;
	__u64 charged;	   /* sum_exec_runtime at the last charge */
	__u64 ahead;	   /* virtual time that its VM has been charged before it was used */
	__u64 uncharged;   /* less than one of it, of the worth */
	__u64 burst_ns;
	__u32 bursts;	   /* that have ended, until there are as many as are remembered */
	__u32 brief;	   /* the part of its last bursts that were short, of ALL */
	__u32 chain;	   /* the part that was chained */
	__u64 bucket_ns;
	__u64 leaked_at;
	struct followed followed; /* by the daemon, if it has a serial number */
};

/* Also of a group above VMs, for the threads that it has itself. The first seven are read by daemon/bpf/scx.py. */
struct vm {
	__u64 time;	    /* V */
	__u64 used_ns;
	__u64 critical_ns;  /* of these as critical */
	__u64 cgroup;
	__u32 weight;	    /* 0: the slot is free */
	__u32 threads;	    /* that run or wait */
	__u32 level;	    /* depth of the group */
	__u32 above;	    /* the slot of the group that it is below; 0 (the kernel's): of none */
	__u64 moved;	    /* of V, what was not use */
	__u64 modest_from;  /* then half of what is due to it will have been as much as its critical threads have used */
	__u64 critical_since; /* critical ones of it have waited all the time since, and none has begun to run */
	__u32 waits[2];	    /* threads that wait, of each class */
	__u32 shared[2];    /* of these, in the queue of all CPUs */
	__u32 taking;	    /* critical ones of those, by CPUs: the kernel may wait for another's run queue first */
	__u32 counted;	    /* of its presence, in active_presence */
	__u32 chain;	    /* the part of its threads' last bursts that was chained, of ALL */
	__u32 worth;	    /* of its weight, beside all VMs of the host (scx_tree.h) */
	__u32 presence;	    /* of this so much as others' debts go by while it runs or waits */
	__u32 busy;	    /* the part of the last span in which its threads ran or waited, of BUSY */
	__u32 usually_busy; /* the average */
	__u32 busy_below;   /* the part in which any of the groups right below it was busy */
	__u64 active_ns;    /* what it ran or waited of the present span until it last slept */
	__u64 weight_below; /* of those that were busy, times how much they were */
	__u64 usual_weight; /* the average of that while any was */
	__u64 due;	    /* to it of the host, beside ALL_DUE */
	__u64 used_below;   /* by VMs right below, of late */
	__u64 seen_ns;	    /* of used_ns, what the group above has counted */
	bool has_queues;
};

/* A VM's stay on the host, or on one CPU with those of its threads that may run only there. */
struct stay {
	__u64 served_at;
	__u64 rested_at; /* when it last slept, or ran with all its threads and was behind */
	__u64 slept_at;
	__u64 woke_at;
	__u64 woke_with; /* V that it had used by then */
	__u64 lapsing;	 /* V that was due to it while it slept */
	__u32 threads;	 /* that run or wait; on the host see struct vm */
};

struct cpu {
	__u32 class; /* of what it runs */
	__u32 vm;
	__u32 rival; /* the VM that was furthest behind of those that waited for it */
	__u32 looked_at;
	__u32 looks;
	__u32 turns;
	__u64 only_kernel_since; /* it has run kernel threads one after the other; 0: it has not */
	bool confined; /* what it runs may run nowhere else */
	bool kicked; /* will pick anew, so nobody else should preempt it */
	bool away;   /* about to go, or gone */
	bool releasing; /* a class above us takes it */
	__u64 own[2][WORDS]; /* VMs with threads that wait for this CPU only */
	__u64 tried[2][WORDS];  /* whose threads may not run here, as this dispatch has found */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

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

/* MAX_VMS for the host, and so many for each CPU: the loader makes it so large. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_VMS);
	__type(key, __u32);
	__type(value, struct stay);
} stays SEC(".maps");

/* Of each VM, the CPUs where one of its threads that wait for several may run, and perhaps more. */
struct reach {
	__u64 cpus[MAX_CPUS / 64];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_VMS);
	__type(key, __u32);
	__type(value, struct reach);
} reaches SEC(".maps");

static __u64 shared[2][WORDS]; /* VMs with threads that wait for any CPU */
static __u32 words_used = 1;
static __u64 span_began; /* of the time for which parts are counted (scx_tree.h) */
static __u64 active_presence; /* of all VMs with threads that run or wait */
static __u64 late_presence; /* of all that did of late */
static __u32 online_cpus = 1;
static volatile __u32 zero; /* where loops begin to count: as the verifier does not know it, one turn says all of them to it */

#define part __attribute__((noinline, visibility("default")))

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

static bool waits(const struct vm *v)
{
	return v->waits[CRITICAL] || v->waits[OTHER];
}

static struct cpu *cpu_at(__s32 cpu)
{
	__u32 key = cpu;

	return bpf_map_lookup_elem(&cpus, &key);
}

static struct stay *stay_at(__s32 cpu, __u32 vm)
{
	__u32 key = (cpu + 1) * MAX_VMS + vm;

	return bpf_map_lookup_elem(&stays, &key);
}

static __u64 bit_of(__u32 vm)
{
	return 1ULL << (vm & 63);
}

static __u32 word_at(__u32 vm)
{
	return vm / 64 & (WORDS - 1);
}

#endif
