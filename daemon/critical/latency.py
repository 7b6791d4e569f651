"""Who yields may start later: a longer rescheduling latency beside the lower weight.

A weight alone lets a critical vCPU that wakes up wait for the end of the slice that background has begun: up
to 2.8 ms and a tick on eight cores or more. EEVDF takes the core at wake-up from whoever has the longer slice
(do_preempt_short() in kernel/sched/fair.c), so those who yield get one that is a little longer than it was.
Much longer ones do no more, and harm who wakes up after it had its share: it waits for the whole slice. On
the patched CFS the same knob keeps them from preempting when they wake up, which hardly matters.

Those who are waited for keep their own. A shorter one gained nothing more, and beside longer ones of the
others it lost: bursts were cut, and then waited for a whole long slice (docs/decisions/0031-yielding.md). So
nobody may start sooner than without us, and as a slice changes nobody's share of a core
(docs/measurements.md, "Slice as rescheduling latency"), nobody gains by pretending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..model import NO_KNOBS, Knob, Knobs, Period, Reason, VcpuId
from .memory import SEASONED, Memory
from .scores import FULL

Latencies = tuple[tuple[VcpuId, int], ...]
"""The rescheduling latency (ns) that each vCPU had which yields now."""

LATER, AS_FOUND = "critical.later", "critical.neutral"

BEGINS, ENDS = FULL // 4, FULL // 2
"""Below the one a vCPU begins to yield, from the other on it ceases to, so that a score between them does not
write every period."""

AS_IT_IS = 100

LONGEST_NS = 100_000_000
"""The longest slice that the kernel takes (__setparam_fair() in kernel/sched/syscalls.c)."""


class Delays(NamedTuple):
    """What those who yield had before, the latencies that are wanted, and why."""

    before: Latencies
    wanted_ns: dict[VcpuId, int]
    reasons: list[Reason]


def low(memories: Sequence[Memory], scores: Sequence[int]) -> dict[VcpuId, int]:
    """The scores of one workload's judged vCPUs below ENDS."""
    pairs = zip(memories, scores, strict=True)
    return {memory.vcpu: score for memory, score in pairs if memory.periods >= SEASONED and score < ENDS}


def delay(period: Period, scores: Mapping[VcpuId, int], before: Latencies, percent: int) -> Delays:
    """So much of what they had for those who yield, and what they had for the others; with 100 % nobody does.
    `scores`: of all who have less than ENDS."""
    held, knobs_of = dict(before), period.knobs
    delays = Delays((), {}, [])
    after: list[tuple[VcpuId, int]] = []
    for vcpu, score in scores.items():
        knobs = knobs_of.get(vcpu)
        present_ns = knobs.rescheduling_latency_ns if knobs else None
        if present_ns is None or percent <= AS_IT_IS or score >= (ENDS if vcpu in held else BEGINS):
            continue
        neutral_ns = held.pop(vcpu, present_ns)
        after.append((vcpu, neutral_ns))
        wanted_ns = min(neutral_ns * percent // AS_IT_IS, max(neutral_ns, LONGEST_NS))
        _want(vcpu, present_ns, wanted_ns, LATER, (("score", score), ("latency_ns", present_ns)), delays)
    for vcpu, neutral_ns in held.items():
        knobs = knobs_of.get(vcpu)
        if knobs and knobs.rescheduling_latency_ns is not None:
            _want(vcpu, knobs.rescheduling_latency_ns, neutral_ns, AS_FOUND, (), delays)
    return delays._replace(before=tuple(after))


def _want(
    vcpu: VcpuId,
    present_ns: int,
    wanted_ns: int,
    rule: str,
    seen: tuple[tuple[str, int], ...],
    delays: Delays,
) -> None:
    if wanted_ns != present_ns:
        delays.wanted_ns[vcpu] = wanted_ns
        delays.reasons.append(Reason(vcpu, Knob.RESCHEDULING_LATENCY, rule, seen))


def merged(knobs: Mapping[VcpuId, Knobs], latencies_ns: Mapping[VcpuId, int]) -> dict[VcpuId, Knobs]:
    """These wishes and those latencies."""
    both = dict(knobs)
    for vcpu, latency_ns in latencies_ns.items():
        both[vcpu] = both.get(vcpu, NO_KNOBS)._replace(rescheduling_latency_ns=latency_ns)
    return both
