/* SPDX-License-Identifier: GPL-2.0-only */
/* When threads ran, waited and slept, which of it was chain, and who is to blame for a wait: level full. */
#ifndef DASEC_EDGES_TIMES_H
#define DASEC_EDGES_TIMES_H

#include "edges_state.h"

/* Time of an episode, which lasts from a wake-up to the next sleep. */
static __always_inline void spend(struct activity *activity, __u64 ns)
{
	if (activity->in_chain)
		activity->chain_ns += ns;
	else
		activity->episode_ns += ns;
}

static __always_inline void join_chain(struct activity *activity)
{
	activity->in_chain = 1;
	activity->chain_ns += activity->episode_ns;
	activity->episode_ns = 0;
}

static __always_inline void end_sleep(struct activity *activity, enum source source)
{
	activity->in_chain = source != TIMER;
	activity->episode_ns = 0;
}

/* How long the thread was ready since then. It runs now, so all its ready times are complete. */
static __always_inline __u64 ready_since(struct activity *activity, __u32 slot, __u64 from_ns)
{
	struct past *past = bpf_map_lookup_elem(&pasts, &slot);
	__u64 sum_ns = 0, count, back;

	if (!past)
		return 0;
	count = past->count;
	for (back = 1; back <= PAST; back++) {
		struct ready *ready = &past->ready[(count - back) % PAST];

		if (back > count || ready->to_ns <= from_ns)
			return sum_ns;
		if (ready->from_ns <= from_ns)
			return sum_ns + ready->to_ns - from_ns;
		sum_ns += ready->to_ns - ready->from_ns;
	}
	if (count > PAST)
		activity->blame_cut++;
	return sum_ns;
}

static __always_inline void remember_ready(const struct followed *followed, __u64 from_ns, __u64 to_ns)
{
	__u32 slot = followed->slot;
	struct past *past = bpf_map_lookup_elem(&pasts, &slot);

	if (past) {
		struct ready *ready = &past->ready[past->count % PAST];

		ready->from_ns = from_ns;
		ready->to_ns = to_ns;
		past->count++;
	}
}

/*
 * What came before this event was not seen. (A kernel may run no program of ours while certain threads are current,
 * whatever interrupts them or follows them on their core: docs/measurements.md.)
 */
static __always_inline void miss(void)
{
	__u32 zero = 0;
	struct totals *total = bpf_map_lookup_elem(&totals, &zero);

	if (total)
		__sync_fetch_and_add(&total->missed, 1);
}

/* What is under way counts until now, as whoever reads the row has it; then nobody knows what the thread is doing. */
static __always_inline void lose_sight(struct activity *activity, __u64 now_ns)
{
	__u64 since_ns = activity->since_ns, passed_ns = now_ns > since_ns ? now_ns - since_ns : 0;

	if (activity->state == RUNNING)
		activity->run_ns += passed_ns;
	if (activity->state == READY)
		activity->ready_ns += passed_ns;
	if (activity->state == RUNNING || activity->state == READY)
		spend(activity, passed_ns);
	activity->state = UNKNOWN;
	activity->since_ns = now_ns;
	activity->episode_ns = 0;
}

/* The thread gets a core. One that was woken before it had left its core (`early`) never slept. */
static __always_inline void dispatch(const struct followed *followed, __u64 now_ns)
{
	struct activity *activity = activity_of(followed);
	__u64 ready_ns;

	if (!activity)
		return;
	if (activity->state == ASLEEP && !activity->early) {
		/* Woken unseen, nobody knows when: who is not known to have been ready is no victim. */
		miss();
		activity->sleep_ns += now_ns - activity->since_ns;
		end_sleep(activity, TIMER);
	} else if (activity->state == READY || activity->state == ASLEEP) {
		if (activity->state == ASLEEP)
			end_sleep(activity, activity->early - 1);
		ready_ns = now_ns - activity->since_ns;
		activity->ready_ns += ready_ns;
		spend(activity, ready_ns);
		remember_ready(followed, activity->since_ns, now_ns);
	}
	activity->dispatches++;
	activity->early = 0;
	activity->since_ns = now_ns;
	activity->state = RUNNING;
}

/* The thread loses its core. */
static __always_inline void displace(const struct followed *followed, bool sleeps, __u64 now_ns)
{
	struct activity *activity = activity_of(followed);

	if (!activity)
		return;
	if (activity->state == RUNNING) {
		activity->run_ns += now_ns - activity->since_ns;
		spend(activity, now_ns - activity->since_ns);
	} else if (activity->state != UNKNOWN) {
		miss(); /* it got its core unseen, nobody knows when: that time counts as nothing */
	}
	if (sleeps)
		activity->bursts++;
	else
		activity->preemptions++;
	activity->since_ns = now_ns;
	activity->state = sleeps ? ASLEEP : READY;
}

#endif
