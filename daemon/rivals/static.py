"""Static pinning: every vCPU on one core for good, as an operator would do by hand (experiments only).

The cores are dealt round-robin, workload by workload, so that the vCPUs of one workload come to sit on
different cores as far as their number allows. A vCPU that may not use the core whose turn it is gets the
next one that it may use. One that comes later takes the next core in turn; nobody else is moved for it. So
does one that may not use its core any more, or whose core has gone. One that may use none of our cores is
left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model import Core, Decision, Knob, Knobs, Period, PolicyState, Reason, Vcpu, VcpuId
from ..policy import Kind


@dataclass(frozen=True, slots=True)
class Pinned(PolicyState):
    """Who was dealt which core, and whose turn is next (counted through the cores, around and around)."""

    cores: tuple[tuple[VcpuId, Core], ...] = ()
    turn: int = 0


@dataclass(frozen=True, slots=True)
class StaticPinning:
    """Deals cores to the vCPUs as they come, and keeps them there."""

    name: str = "static"

    def initial_state(self) -> PolicyState:
        """Nobody is pinned yet."""
        return Pinned()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """A core for everybody who is new, or may not use their own any more; their own for those who are
        elsewhere."""
        before = state if isinstance(state, Pinned) else Pinned()
        dealt, turn = dict(before.cores), before.turn
        pins: dict[VcpuId, Core] = {}
        for vcpu in (vcpu for workload in period.workloads for vcpu in workload.vcpus):
            if vcpu.id not in period.knobs:
                continue
            core = dealt.get(vcpu.id)
            if core is None or core not in vcpu.allowed.intersection(period.topology.cores):
                steps = _steps_to_next(period.topology.cores, turn, vcpu)
                if steps is None:
                    continue
                core = period.topology.cores[(turn + steps) % len(period.topology.cores)]
                turn += steps + 1
            pins[vcpu.id] = core
        return _decision(period, pins, turn)


def _steps_to_next(cores: Sequence[Core], turn: int, vcpu: Vcpu) -> int | None:
    """How many turns until a core that this vCPU may use; None if it may use none."""
    steps = range(len(cores))
    return next((step for step in steps if cores[(turn + step) % len(cores)] in vcpu.allowed), None)


def _decision(period: Period, pins: dict[VcpuId, Core], turn: int) -> Decision:
    knobs: dict[VcpuId, Knobs] = {}
    reasons: list[Reason] = []
    for vcpu, core in pins.items():
        present = period.knobs[vcpu].affinity
        if present is not None and present != {core}:
            knobs[vcpu] = Knobs(None, None, frozenset((core,)))
            reasons.append(Reason(vcpu, Knob.AFFINITY, "static.pin", (("core", core),)))
    return Decision(knobs, tuple(reasons), Pinned(tuple(pins.items()), turn))


KIND = Kind("static", lambda parameters: StaticPinning(), rules={"static.pin": "pinned once, evenly"})
