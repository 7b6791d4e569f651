"""Borrowed virtual time, as far as a host's knobs go: workloads declared latency-critical start sooner and
get no more (Duda and Cheriton, SOSP'99; the DASEC paper's rival in §6.3).

BVT runs the thread with the earliest *effective* virtual time: its own, less a warp where it is warped. A
warped thread is dispatched earlier and pays for it later; in the long run weights alone say what everybody
gets. On EEVDF that is a short slice: the virtual deadline is the virtual time plus slice / weight, so the
warp is what the slice is shorter than others', and the kernel's lag sees to the paying. On the patched CFS it
is a short wake-up granularity. Both are the knob that we call rescheduling latency, the only one touched.

BVT bounds a warp by L, the longest time to run warped, and U, the least time between two warps. A vCPU that
computes for more than L of a period is not warped for U: its latency is then as it was found.

What differs: BVT's warp is a virtual time of its own for each thread, ours the same for all; L and U count
in periods; BVT's context switch allowance is left to the kernel (its base slice, or its tick).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from ..critical.names import ANY_END, matches
from ..model import Decision, Knob, Knobs, Period, PolicyState, Reason, VcpuId
from ..policy import Kind
from ..rla.parameters import SLICE_US
from ..settings import Help, Range, check

LATENCY_NS = 700_000
"""What a warped vCPU gets: the kernel's base slice before it is scaled by the number of cores
(sysctl_sched_base_slice in kernel/sched/fair.c), so half to a quarter of everybody else's. Shorter ones cut
bursts (docs/measurements.md, "Slice as rescheduling latency")."""

LIMIT_PERCENT = 50
"""L, of a period: who runs for half of it waits for no events. By hand; BVT leaves it to the operator."""

UNWARP_NS = 160_000_000
"""U: two periods, the least that is more than the one in which L was exceeded. By hand, as L."""


@dataclass(frozen=True, slots=True)
class BvtParameters:
    """Which workloads are latency-critical (names; with `*` at the end: their beginnings), and the terms."""

    critical: Annotated[tuple[str, ...], Help('a list of names of workloads such as ["web-*"]')] = (ANY_END,)
    latency_ns: Annotated[int, SLICE_US] = LATENCY_NS
    limit_percent: Annotated[int, Range(1, 100, "a part of a period from 1 to 100")] = LIMIT_PERCENT
    unwarp_ns: Annotated[int, Range(0, 3_600_000, unit="ms")] = UNWARP_NS

    def __post_init__(self) -> None:
        check(self)

    def knows(self, workload: str) -> bool:
        """Is this workload latency-critical?"""
        return any(matches(pattern, workload) for pattern in self.critical)


@dataclass(frozen=True, slots=True)
class BvtState(PolicyState):
    """The latency of each critical vCPU when it was first seen, and how long some may not be warped yet."""

    neutral_ns: tuple[tuple[VcpuId, int], ...] = ()
    unwarped_ns: tuple[tuple[VcpuId, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Bvt:
    """Warps the vCPUs of latency-critical workloads, within L and U."""

    parameters: BvtParameters = field(default_factory=BvtParameters)
    name: str = "bvt"

    def initial_state(self) -> PolicyState:
        """Nobody seen."""
        return BvtState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """A short latency for whom may be warped, their own for the others."""
        known = state if isinstance(state, BvtState) else BvtState()
        before, waiting = dict(known.neutral_ns), dict(known.unwarped_ns)
        neutral_ns: dict[VcpuId, int] = {}
        unwarped_ns: dict[VcpuId, int] = {}
        knobs: dict[VcpuId, Knobs] = {}
        reasons: list[Reason] = []
        for vcpu in self._critical(period):
            present_ns = period.knobs[vcpu].rescheduling_latency_ns
            if present_ns is None:
                continue
            neutral_ns[vcpu] = before.get(vcpu, present_ns)
            left_ns = self._unwarped(period, vcpu, waiting.get(vcpu, 0))
            if left_ns:
                unwarped_ns[vcpu] = left_ns
            wanted_ns = neutral_ns[vcpu] if left_ns else min(self.parameters.latency_ns, neutral_ns[vcpu])
            if wanted_ns != present_ns:
                knobs[vcpu] = Knobs(None, wanted_ns, None)
                rule = "bvt.unwarp" if left_ns else "bvt.warp"
                reasons.append(Reason(vcpu, Knob.RESCHEDULING_LATENCY, rule, (("unwarped_ns", left_ns),)))
        after = BvtState(tuple(neutral_ns.items()), tuple(unwarped_ns.items()))
        return Decision(knobs, tuple(reasons), after)

    def _critical(self, period: Period) -> list[VcpuId]:
        """The vCPUs of latency-critical workloads that are there."""
        chosen = (each for each in period.workloads if self.parameters.knows(each.name))
        return [vcpu.id for each in chosen for vcpu in each.vcpus if vcpu.id in period.knobs]

    def _unwarped(self, period: Period, vcpu: VcpuId, left_ns: int) -> int:
        """How long this one may not be warped from now on."""
        used = period.usage.get(vcpu)
        if used and used.consumed_ns * 100 > self.parameters.limit_percent * period.length_ns:
            return self.parameters.unwarp_ns
        return max(0, left_ns - period.length_ns)


KIND = Kind(
    "bvt",
    lambda parameters: Bvt(parameters.of(BvtParameters)),
    settings=(BvtParameters,),
    rules={
        "bvt.warp": "its workload is declared latency-critical, so it may start sooner",
        "bvt.unwarp": "it ran for too long to start sooner; for a while it is as it was found",
    },
)
