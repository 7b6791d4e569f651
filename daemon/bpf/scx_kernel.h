/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types and functions of sched_ext (Linux 6.12, kernel/sched/ext.c) that scx_dasec uses, each with the
 * fields used here only: libbpf finds the true offsets when it loads the object (CO-RE). A type whose name ends in
 * ___scx is the kernel's of that name without the ending; kernel.h has its other fields.
 */
#ifndef DASEC_SCX_KERNEL_H
#define DASEC_SCX_KERNEL_H

#include "kernel.h"

#define true 1
#define false 0

struct scx_cgroup_init_args;
struct scx_cpu_release_args;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
};

struct sched_ext_entity {
	__u32 flags;
	__u64 slice;
	__u64 dsq_vtime;
};

struct task_struct___scx {
	unsigned int flags;
	__s32 tgid;
	int prio;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
};

struct scx_init_task_args {
	struct cgroup *cgroup;
};

struct scx_cgroup_init_args {
	__u32 weight;
};

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	__s64 exit_code;
	const char *reason;
	char *msg;
};

struct bpf_cpumask {
	struct cpumask cpumask;
};

/* Up to 6.14; later kernels have __preempt_count instead. */
struct pcpu_hot {
	int preempt_count;
};

#pragma clang attribute pop

/* What is set here; a kernel that lacks one of these members refuses the object. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags);
	void (*enqueue)(struct task_struct *p, __u64 enq_flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, __u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, __u64 deq_flags);
	void (*disable)(struct task_struct *p);
	void (*cpu_release)(__s32 cpu, struct scx_cpu_release_args *args);
	void (*cpu_online)(__s32 cpu);
	void (*cpu_offline)(__s32 cpu);
	__s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	__s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, __u32 weight);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	__u32 timeout_ms;
	char name[128];
};

struct bpf_iter_scx_dsq {
	__u64 opaque[6];
} __attribute__((aligned(8)));

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

extern __s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;
extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags, bool *is_idle) __ksym;
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq_id) __ksym;
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
extern __u32 scx_bpf_reenqueue_local(void) __ksym;
extern __s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
extern const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym;
extern void scx_bpf_put_cpumask(const struct cpumask *mask) __ksym;
extern __u32 bpf_cpumask_weight(const struct cpumask *mask) __ksym;
extern struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
extern void bpf_cpumask_release(struct bpf_cpumask *mask) __ksym;
extern void bpf_cpumask_clear(struct bpf_cpumask *mask) __ksym;
extern void bpf_cpumask_set_cpu(__u32 cpu, struct bpf_cpumask *mask) __ksym;
extern bool bpf_cpumask_and(struct bpf_cpumask *into, const struct cpumask *a, const struct cpumask *b) __ksym;
extern __u32 bpf_cpumask_first(const struct cpumask *mask) __ksym;
extern bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *mask) __ksym;
extern struct cgroup *bpf_cgroup_from_id(__u64 id) __ksym;
extern struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
extern void bpf_cgroup_release(struct cgroup *cgrp) __ksym;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq_id, __u64 flags) __ksym;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

/* 6.12, and 6.13 to 6.18 beside the new names (torvalds/linux cc26abb1a19a). */
extern void scx_bpf_dispatch(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 enq_flags) __ksym __weak;
extern bool scx_bpf_consume(__u64 dsq_id) __ksym __weak;
extern bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq_id,
				      __u64 enq_flags) __ksym __weak;
/* From 6.13 on. */
extern void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym __weak;
extern bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq_id,
			     __u64 enq_flags) __ksym __weak;

extern const struct pcpu_hot pcpu_hot __ksym __weak;
extern const int __preempt_count __ksym __weak;
extern const void local_interrupt_disable_state __ksym __weak;

/*
 * The condition of a loop that nothing else bounds: false after 8 million times, for which the verifier lets it pass
 * (may_goto, Linux 6.9, torvalds/linux 011832b97b31). In bytes, since the compiler knows no such instruction; an iterator of the
 * kernel's would be a call each time.
 */
#define may_go_on() ({ \
	__label__ on, out; \
	bool goes = true; \
	asm volatile goto("1: .byte 0xe5, 0; .long (%l[out] - 1b - 8) / 8 & 0xffff; .short 0" ::::out); \
	goto on; \
out: \
	goes = false; \
on: \
	goes; \
})

#define MAX_RT_PRIO 100
#define PF_KTHREAD 0x00200000
#define HARDIRQ_BITS 0xf0000
#define HARDIRQ_BITS_LATER 0xf000000 /* from 7.3 on, behind a count of disabled interrupts ("preempt: Introduce HARDIRQ_DISABLE_BITS") */
#define ENOMEM 12
#define EEXIST 17

#define SCX_OPS_ENQ_EXITING (1 << 2)
#define SCX_OPS_SWITCH_PARTIAL (1 << 3)
#define SCX_DSQ_GLOBAL 0x8000000000000001ULL
#define SCX_DSQ_LOCAL 0x8000000000000002ULL
#define SCX_TASK_QUEUED 1
#define SCX_ENQ_WAKEUP 1
#define SCX_DEQ_SLEEP 1
#define SCX_PICK_IDLE_CORE 1
#define SCX_KICK_IDLE 1
#define SCX_KICK_PREEMPT 2

#endif
