/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is followed, and what is counted of them.
 *
 * A thread is followed by task storage, which belongs to the thread itself and goes when it ends: no thread
 * can inherit what was counted for a former owner of its id. User space gives each followed thread a slot (an
 * index into `activities`) and a serial number that is never used twice; edges are keyed by serial numbers.
 *
 * Who writes what: a thread's wake-up counts and its way out of sleep are written under its pi_lock, which the
 * kernel holds at sched_waking; everything else by the core that it runs on. So plain additions do.
 */
#ifndef DASEC_EDGES_STATE_H
#define DASEC_EDGES_STATE_H

#include "kernel.h"

#define SLOTS 4096
#define EDGES 16384

/* Ready times kept of each thread: blame looks back over the sleep of whoever is woken. */
#define PAST 64

enum state { UNKNOWN = 0, ASLEEP = 1, READY = 2, RUNNING = 3 };
enum source { SIBLING = 0, EXTERNAL = 1, TIMER = 2 };

/* Wakers whose edges lie beside their wakee, which saves the hash map's look-up. The first come stay. */
#define NEAR 6

struct edge {
	__u64 wakeups;
	__u64 blame_ns;
};

/* Of one followed thread; user space reads it as memory. */
struct activity {
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
	__u32 early;	  /* source + 1 of a wake-up that came while it was still going to sleep */
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
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct activity);
} activities SEC(".maps");

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

/* By whoever includes this: where a thread's storage is. */
static struct followed *follow_of(struct task_struct *task);
static bool begin_to_follow(struct task_struct *task, struct followed *first);
static void end_to_follow(struct task_struct *task);
/* Whether it is seen when the thread gets and loses its CPU: then a wake-up tells what it is doing. */
static bool is_in_sight(const struct task_struct *task);

static __always_inline struct activity *activity_of(const struct followed *followed)
{
	__u32 slot = followed->slot;

	return bpf_map_lookup_elem(&activities, &slot);
}

#endif
