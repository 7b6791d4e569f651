"""Who is waited for: a rank over the wake-ups among siblings, as PageRank goes over links.

A vCPU that sleeps until a sibling wakes it was waiting for that sibling. So rank flows from a vCPU to its
wakers, in proportion to how often each of them woke it. In requests and replies (fan-out and join, locks)
waiter and waker wait for each other, and the rank goes around; where signals go one way only, it soon ends.

With b's wakers a, and p[a, b] the part of b's sibling wake-ups that a made:

    excess[a] = DAMPING × sum over b of p[a, b] × (source[b] + excess[b])
    source[b] = min(1, wake-ups of siblings by b / wake-ups of b by siblings)

This is PageRank less its uniform part, and without its scale: idle siblings neither take part nor change
anything. Unlike there, a vCPU is a source only so far as it wakes others in turn: nobody waits for one that
only takes (a logger), so whoever feeds it has no rank from that. Two steps are made in 80 ms, from the
last period's result.

**What is enough.** Whoever has at least the reference has rank 1: half of the excess that those who hold two
thirds of all excess have at least. Two thirds, because the hub of a fan-out holds just over half, its helpers
the rest. Half, so that helpers which are woken less often than others are not told apart. The median of all
would be a background vCPU's as soon as there are more of them than critical ones.

Wake-ups count alike, however long they were waited for: a stray edge then does little, where times make it a
critical path (docs/measurements.md, "Weights that follow the critical path").
"""

from __future__ import annotations

from collections.abc import Sequence

from .memory import Memory

ONE = 1_000_000
"""Excess is counted in millionths."""

DAMPING_PERCENT = 85
"""PageRank's own value: a cycle gathers at most 1 / (1 - 0.85) = 6.7 times what one wake-up gives."""

STEPS = 2
"""For each step of ageing (memory.py); with the memory of the last, eight when the first vCPU is judged."""

MOST_STEPS = 8
"""A long period needs no more: 0.85^8 of what was before them is left."""


def excesses(memories: Sequence[Memory], before: Sequence[int], ages: int = 1) -> tuple[list[int], list[int]]:
    """The excess of each of one workload's vCPUs, in millionths, and how often it woke siblings (counts),
    from the excess `before` so many steps of ageing."""
    excess, woke = [0] * len(memories), [0] * len(memories)
    if not any(memory.wakers for memory in memories):
        return excess, woke
    row_of = {memory[0]: row for row, memory in enumerate(memories)}
    links: list[tuple[int, int, int]] = []
    received = [0] * len(memories)
    for row, memory in enumerate(memories):
        known = [(at, count) for waker, count in memory.wakers if (at := row_of.get(waker)) is not None]
        total = sum([count for _, count in known])
        received[row] = total
        for waker, count in known:
            woke[waker] += count
            links.append((waker, row, count * (ONE * DAMPING_PERCENT // 100) // total))
    source = [min(ONE, ONE * out // taken) if taken else 0 for out, taken in zip(woke, received, strict=True)]
    excess = list(before)
    for _ in range(min(STEPS * ages, MOST_STEPS)):
        held = list(map(int.__add__, source, excess))
        excess = [0] * len(memories)
        for waker, row, part in links:
            excess[waker] += part * held[row]
        excess = [each // ONE for each in excess]
    return excess, woke


def reference(excess: Sequence[int]) -> int:
    """The excess from which on a vCPU has full rank; 0 if nobody has any."""
    total = sum(excess)
    gathered = 0
    for each in sorted(excess, reverse=True):
        gathered += each
        if gathered * 3 >= total * 2:
            return each // 2
    return 0
