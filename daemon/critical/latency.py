"""Who is waited for may start sooner, who yields later: rescheduling latencies beside weights.

A weight alone lets a woken vCPU wait for the end of the slice that another one has begun: up to 2.8 ms and a
tick on eight cores or more. EEVDF takes the core at wake-up from whoever has the longer slice
(do_preempt_short() in kernel/sched/fair.c), CFS from whoever is ahead by more than the woken one's
granularity (`kvm-patches`). So a short one for those who are waited for and a long one for those who yield
mean the same on both.

A latency changes nobody's share of a core (docs/measurements.md, "Slice as rescheduling latency"): whoever
pretends starts sooner, and gets no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..model import Knob, Knobs, Period, Reason, VcpuId
from .parameters import CriticalParameters
from .scores import FULL

Latencies = tuple[tuple[VcpuId, int], ...]
"""The rescheduling latency (ns) that each vCPU had before the policy."""

SOONER, LATER, AS_FOUND = "critical.sooner", "critical.later", "critical.neutral"

WAITED_FOR, YIELDING = FULL // 2, FULL // 4
"""From the one on sooner, below the other later; between them a vCPU stays as it is, so that a score there
does not write every period."""


class Delays(NamedTuple):
    """What each had before, the latencies that are wanted, and why."""

    before: Latencies
    wanted_ns: dict[VcpuId, int]
    reasons: list[Reason]


def delay(
    period: Period, scores: Mapping[VcpuId, int], before: Latencies, parameters: CriticalParameters
) -> Delays:
    """New latencies for the vCPUs with these scores; the others have what they had."""
    sooner_ns, later_ns = parameters.path_latency_ns, parameters.yield_latency_ns
    held, knobs_of = dict(before), period.knobs
    after: list[tuple[VcpuId, int]] = []
    wanted: dict[VcpuId, int] = {}
    reasons: list[Reason] = []
    for vcpu, score in scores.items():
        knobs = knobs_of.get(vcpu)
        present_ns = knobs.rescheduling_latency_ns if knobs else None
        if present_ns is None:
            continue
        neutral_ns = held.pop(vcpu, present_ns)
        after.append((vcpu, neutral_ns))
        if score >= WAITED_FOR:
            new_ns, rule = min(sooner_ns or neutral_ns, neutral_ns), SOONER
        elif score < YIELDING:
            new_ns, rule = max(later_ns, neutral_ns), LATER
        else:
            continue
        if new_ns != present_ns:
            wanted[vcpu] = new_ns
            seen = (("score", score), ("latency_ns", present_ns))
            reasons.append(Reason(vcpu, Knob.RESCHEDULING_LATENCY, rule, seen))
    for vcpu, neutral_ns in held.items():
        knobs = knobs_of.get(vcpu)
        if knobs and knobs.rescheduling_latency_ns not in {None, neutral_ns}:
            wanted[vcpu] = neutral_ns
            reasons.append(Reason(vcpu, Knob.RESCHEDULING_LATENCY, AS_FOUND))
    return Delays(tuple(after), wanted, reasons)


def merged(knobs: Mapping[VcpuId, Knobs], latencies_ns: Mapping[VcpuId, int]) -> dict[VcpuId, Knobs]:
    """These wishes and those latencies."""
    both = dict(knobs)
    for vcpu, latency_ns in latencies_ns.items():
        weight = both[vcpu].weight if vcpu in both else None
        both[vcpu] = Knobs(weight, latency_ns, None)
    return both
