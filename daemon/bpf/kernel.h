/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel types that our programs read, each with the fields used here only: libbpf finds the
 * true offsets in the running kernel's BTF when it loads the object (CO-RE).
 */
#ifndef DASEC_KERNEL_H
#define DASEC_KERNEL_H

typedef signed int __s32;
typedef signed long long __s64;
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1U
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1U
#define BPF_F_MMAPABLE (1U << 10)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* A reference to a kernel object kept in a map (Linux 6.2; libbpf 1.1 has the older name for it). */
#undef __kptr
#define __kptr __attribute__((btf_type_tag("kptr")))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	__u32 cpu;
};

struct sched_entity {
	__u8 sched_delayed;
	__u64 sum_exec_runtime;
	__u64 slice;
};

#define CPU_WORDS 8

struct cpumask {
	unsigned long bits[CPU_WORDS];
};

struct cgroup_subsys_state {
	int id;
};

struct task_group {
	struct cgroup_subsys_state css;
};

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
};

struct bpf_local_storage;

/*
 * What is small and never negative has no sign here, whatever the kernel says: libbpf makes a read as wide as the kernel has the
 * field only if neither has one. on_cpu and on_rq were int, and are u8 in 7.3.
 */
struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int on_cpu;
	unsigned int on_rq;
	unsigned int policy;
	unsigned int static_prio;
	struct cpumask cpus_mask;
	struct task_group *sched_task_group;
	unsigned int exit_state;
	__s32 pid;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned long nvcsw;
	unsigned long nivcsw;
	__u64 start_boottime;
	struct bpf_local_storage *bpf_storage;
};

#pragma clang attribute pop

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *task) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;

#define TASK_RUNNING 0x0000
#define TASK_WAKING 0x0200
#define TASK_NEW 0x0800

/* What /proc/PID/stat counts a start time in (USER_HZ = 100, part of the ABI). */
#define NS_PER_CLOCK_TICK 10000000ULL

#endif
