/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who is critical: whose bursts are short, and for whom others of its process wait, so it is woken by them or wakes
 * them. In a VM where that is hardly ever seen, as timers wake its threads, short bursts suffice. A thread's time as
 * critical fills a bucket that leaks, so that nobody is critical all of the time.
 *
 * Words: what a daemon says of a thread, for as long as it attends. A latency below the slice makes the thread
 * critical, a longer one not, whatever its bursts say; a weight makes its slices shorter or longer.
 */
#ifndef DASEC_SCX_CRITICAL_H
#define DASEC_SCX_CRITICAL_H

#include "scx_state.h"

#define ALL 1024 /* of its bursts */
#define REMEMBERED 32 /* bursts, of which it counts how many were chained */
#define STRANGERS 8 /* in a VM of whose bursts fewer than one of so many are chained */

#define NEUTRAL_WEIGHT 1024
#define LEAST_WEIGHT 256 /* a slice is a quarter at least, and four times as long at most */
#define MOST_WEIGHT 4096

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

static const struct word *word_of(struct task_struct *p, __u64 now)
{
	__u32 zero = 0;
	__u64 *until = bpf_map_lookup_elem(&attended, &zero);

	if (!until || before(*until, now))
		return NULL;
	return bpf_task_storage_get(&dasec_words, p, 0, 0);
}

/* Often, or half as often as its VM's threads are: those that are alike are of one class, also where all are chained but now and then. */
static bool is_chained(const struct thread *t)
{
	const struct vm *v = vm_at(t->vm);
	__u32 enough = options.chain_percent * ALL / 100;

	if (v && v->chain / 2 < enough)
		enough = v->chain / 2;
	return t->chain >= enough;
}

/* Timers and devices wake nearly all threads of its VM, so who waits for whom cannot be seen. */
static bool is_of_strangers(const struct thread *t)
{
	const struct vm *v = vm_at(t->vm);

	return v && v->chain * STRANGERS < ALL;
}

/*
 * In its first burst as long as that is short, so that a new thread is not behind all others. A burst is judged when it ends, so one
 * that does not end says what it is by its length.
 */
static bool is_critical(const struct thread *t, const struct word *said)
{
	if (said && said->latency_ns && said->latency_ns != options.slice_ns)
		return said->latency_ns < options.slice_ns;
	if (!t->bursts)
		return t->burst_ns < options.short_ns;
	if (t->burst_ns >= options.endless_ns)
		return false;
	return t->brief * 2 >= ALL && (is_chained(t) || is_of_strangers(t));
}

static bool bucket_is_full(struct thread *t, __u64 now)
{
	__u64 leak = (now - t->leaked_at) * options.bucket_percent / 100;

	t->bucket_ns = t->bucket_ns > leak ? t->bucket_ns - leak : 0;
	t->leaked_at = now;
	return t->bucket_ns > options.bucket_ns;
}

/* Sets its class; returns the slice that goes with it. */
static __u64 classify(struct task_struct *p, struct thread *t, __u64 now)
{
	const struct word *said = word_of(p, now);
	__u64 weight = said && said->weight ? said->weight : NEUTRAL_WEIGHT;

	t->critical = is_critical(t, said);
	t->class = t->critical && !bucket_is_full(t, now) ? CRITICAL : OTHER;
	if (t->vm == KERNEL)
		t->class = CRITICAL;
	if (t->class == CRITICAL)
		return options.critical_slice_ns;
	if (weight < LEAST_WEIGHT)
		weight = LEAST_WEIGHT;
	else if (weight > MOST_WEIGHT)
		weight = MOST_WEIGHT;
	return options.slice_ns * weight / NEUTRAL_WEIGHT;
}

static void judge(struct thread *t, struct vm *v)
{
	__u32 chained = t->chained ? ALL : 0, brief = t->burst_ns < options.short_ns ? ALL : 0;

	t->brief = t->bursts ? (t->brief * 7 + brief) / 8 : brief;
	t->chain = (t->chain * t->bursts + chained) / (t->bursts + 1);
	if (v) /* another CPU may do so at once: of very many bursts one is forgotten then */
		v->chain = (v->chain * 63 + chained) / 64;
	if (t->bursts < REMEMBERED - 1)
		t->bursts++;
	t->chained = false;
	t->burst_ns = 0;
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

		return *count & (&local_interrupt_disable_state ? HARDIRQ_BITS_LATER : HARDIRQ_BITS);
	}
	return false;
}

static void link_waker(struct task_struct *p, struct thread *t)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct thread *w;

	if (in_interrupt())
		return;
	t->chained = true;
	if (scx_of(waker)->tgid != scx_of(p)->tgid)
		return;
	w = thread_of(waker);
	if (w)
		w->chained = true;
}

#endif
