"""What is remembered of each vCPU: decaying sums of what it did, and who woke it.

Every period a sum becomes sum × decay + what was added, with a stronger decay for a longer period. All sums
are whole numbers, so that a replay on another machine comes to the same: times in ns, counts in thousandths.
"""

from __future__ import annotations

from collections.abc import Container
from enum import IntEnum
from typing import NamedTuple

from ..model import Usage, VcpuId
from .parameters import CriticalParameters

COUNT = 1000
"""One wake-up, in the unit of counts."""

FORGET_NS = 200_000
"""A vCPU is forgotten when it competed for less than this in all that is remembered: too little to say what
it is for (docs/measurements.md, "Weights that follow the critical path"). After bursts of 10 ms that takes
24 periods."""

FAINT = COUNT // 50
"""Wake-ups by one waker that have decayed below this are forgotten."""

Wakers = tuple[tuple[VcpuId, int], ...]


class Counting(IntEnum):
    """What a host counts: no wake-ups at all; who woke whom; and also the time in chains."""

    NONE = 0
    EDGES = 1
    CHAINS = 2


_NONE, _EDGES, _CHAINS = Counting  # a global costs a tenth of looking a member up in its enum


class Memory(NamedTuple):
    """One vCPU's past. `bursts` are wake-ups, `brief` those of them that led to short bursts (scores.py),
    `led` those by siblings and from outside; these and `wakers` are counts. `level` is what its host counts:
    who ran without any count, where chains were counted, is counted no more. Where only wakers are told,
    nothing tells that from a vCPU that nobody woke. `periods` is how many steps (STEP_NS) are in this,
    SEASONED at most. `outward` counts whom it woke outside its workload; 0, too, where its host does not
    count that.
    """

    vcpu: VcpuId
    run_ns: int
    busy_ns: int
    chain_ns: int
    bursts: int
    brief: int
    led: int
    wakers: Wakers
    periods: int
    level: Counting
    outward: int = 0


SEASONED = 4
"""A vCPU is judged from its fourth remembered period on. With the first periods alone chance decides; with
four, the measured rules found the critical vCPUs at once (docs/measurements.md, "Weights that follow the
critical path")."""


STEP_NS = 80_000_000
"""Memories fade by `decay_percent` in the paper's period (§6.1), and by its powers in what lasted longer."""


MOST_STEPS = 64
"""After a suspended host's hours there is nothing left to fade: at 85 % this leaves 0.003 %."""


class Ageing(NamedTuple):
    """What a period does to memories: it is worth so many steps, which leave so much of what was; and up to
    which length a burst is short."""

    steps: int
    decay_percent: int
    burst_ns: int

    @classmethod
    def over(cls, length_ns: int, rules: CriticalParameters) -> Ageing:
        """By a period of that length; a shorter one than STEP_NS is a step as well."""
        steps = min(max(1, (length_ns + STEP_NS // 2) // STEP_NS), MOST_STEPS)
        return cls(steps, rules.decay_percent**steps // 100 ** (steps - 1), rules.burst_ns)


def remember(
    then: Memory | None, vcpu: VcpuId, used: Usage, present: Container[VcpuId], ageing: Ageing
) -> Memory | None:
    """The memory of one vCPU after what it used; None if there is too little to remember. Who is not
    `present` any more is no waker either."""
    consumed_ns, ready_ns, dispatches, _, _, woken_by, wakeups, external, chain_ns, outward = used
    busy_ns = consumed_ns + ready_ns
    bursts, led, outward = dispatches, 0, (outward or 0) * COUNT
    level, wakers = _NONE, woken_by
    if wakeups is not None:
        level = _EDGES if chain_ns is None else _CHAINS
        bursts, led = wakeups, (external or 0) * COUNT
    # Bursts of a server in a backlog are long for once, and few: so each wake-up counts, not each nanosecond.
    steps, decay_percent, burst_ns = ageing
    if consumed_ns > burst_ns * bursts:
        bursts = bursts or 1
        brief = COUNT * burst_ns * bursts * bursts // consumed_ns
    else:
        brief = bursts * COUNT
    bursts *= COUNT
    if woken_by:
        level = level or _EDGES
        led += sum([count for _, count in woken_by]) * COUNT
        wakers = tuple([(waker, count * COUNT) for waker, count in woken_by])
    if then is None:
        if busy_ns < FORGET_NS:
            return None
        counts = bursts, brief, led, wakers, steps, level, outward
        return Memory(vcpu, consumed_ns, busy_ns, chain_ns or 0, *counts)
    _, run_ns, busy_was, chain_was, bursts_was, brief_was, led_was, woken_was, periods, level_was, out = then
    busy_ns += busy_was * decay_percent // 100
    if busy_ns < FORGET_NS:
        return None
    # Like Memory(...), without the Python code of a named tuple's constructor (decision 0003).
    return tuple.__new__(
        Memory,
        (
            vcpu,
            run_ns * decay_percent // 100 + consumed_ns,
            busy_ns,
            chain_was * decay_percent // 100 + (chain_ns or 0),
            bursts_was * decay_percent // 100 + bursts,
            brief_was * decay_percent // 100 + brief,
            led_was * decay_percent // 100 + led,
            _merged(woken_was, wakers, present, decay_percent) if woken_was or wakers else wakers,
            min(SEASONED, periods + steps),
            level or (_NONE if level_was is _CHAINS and dispatches else level_was),
            out * decay_percent // 100 + outward,
        ),
    )


def _merged(before: Wakers, new: Wakers, present: Container[VcpuId], decay_percent: int) -> Wakers:
    # The same siblings as ever is the usual case; then nothing needs to be sorted.
    if [waker for waker, _ in before] == [waker for waker, _ in new]:
        return tuple(
            [
                (waker, old * decay_percent // 100 + count)
                for (waker, old), (_, count) in zip(before, new, strict=True)
            ]
        )
    counts: dict[VcpuId, int] = {}
    for waker, count in before:
        left = count * decay_percent // 100
        if left >= FAINT and waker in present:
            counts[waker] = left
    if new:
        for waker, count in new:
            counts[waker] = counts.get(waker, 0) + count
        return tuple(sorted(counts.items()))
    return tuple(counts.items())
