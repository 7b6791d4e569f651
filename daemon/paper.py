"""The paper's own policy: TSA, then RLA, then RCR (§4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .entitlement import Standing, standings
from .model import Core, Decision, Knobs, Level, Period, PolicyState, Reason, VcpuId
from .policy import UNSHOWN, Kind
from .rcr import RcrParameters, Resolution, resolve
from .rla import Adjustment, RlaParameters, adjust
from .tsa import TsaParameters, reweigh


@dataclass(frozen=True, slots=True)
class DasecState(PolicyState):
    """Whom RLA has seen, and whom RCR moved in which period (its index). `neutral`: for TSA the weight that
    each vCPU had when it was first seen."""

    started: tuple[VcpuId, ...] = ()
    moved: tuple[tuple[VcpuId, int], ...] = ()
    neutral: tuple[tuple[VcpuId, int], ...] = field(default=(), metadata=UNSHOWN)


@dataclass(frozen=True, slots=True)
class Dasec:
    """The paper's policy: slices, then rescheduling latencies, then the layout (§4.2)."""

    tsa: TsaParameters = field(default_factory=TsaParameters)
    rla: RlaParameters = field(default_factory=RlaParameters)
    rcr: RcrParameters = field(default_factory=RcrParameters)
    name: str = "dasec"

    def initial_state(self) -> PolicyState:
        """Nobody seen, nobody moved."""
        return DasecState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """The three rules in order; each sees what those before it decided, and each can be switched off."""
        known = state if isinstance(state, DasecState) else DasecState()
        now = standings(period, self.tsa.tick_ns)
        neutral = _neutral(period, dict(known.neutral)) if self.tsa.enabled else dict(known.neutral)
        weights, reasons, sums = self._reweigh(now, neutral)
        latencies = Adjustment({}, [], known.started)
        if self.rla.enabled:
            latencies = adjust(now, known.started, self.rla)
        layout = Resolution({}, [], known.moved)
        if self.rcr.enabled:
            layout = resolve(period, now, weights, latencies.latencies_ns, known.moved, self.rcr)
        return Decision(
            _merged(weights, latencies.latencies_ns, layout.pins),
            (*reasons, *latencies.reasons, *layout.reasons),
            DasecState(latencies.started, layout.moved, tuple(neutral.items())),
            sums=sums,
        )

    def _reweigh(
        self, now: Sequence[Standing], neutral: Mapping[VcpuId, int]
    ) -> tuple[dict[VcpuId, int], list[Reason], dict[str, int]]:
        weights: dict[VcpuId, int] = {}
        reasons: list[Reason] = []
        sums: dict[str, int] = {}
        if self.tsa.enabled:
            for standing in now:
                allocation = reweigh(standing, neutral, self.tsa)
                if allocation.weights:
                    weights.update(allocation.weights)
                    reasons += allocation.reasons
                    sums[standing.workload.name] = allocation.total
        return weights, reasons, sums


def _neutral(period: Period, before: Mapping[VcpuId, int]) -> dict[VcpuId, int]:
    """The weight that each had when it was first seen, of all whose weight is ours."""
    return {
        vcpu: before.get(vcpu, knobs.weight)
        for vcpu, knobs in period.knobs.items()
        if knobs.weight is not None
    }


def _merged(
    weights: Mapping[VcpuId, int], latencies_ns: Mapping[VcpuId, int], pins: Mapping[VcpuId, Core]
) -> dict[VcpuId, Knobs]:
    """One Knobs for each vCPU that any rule wants to change."""
    changed = dict.fromkeys((*weights, *latencies_ns, *pins))
    return {
        # Like Knobs(...), without the Python code of a named tuple's constructor (decision 0003).
        vcpu: tuple.__new__(
            Knobs,
            (weights.get(vcpu), latencies_ns.get(vcpu), frozenset((pins[vcpu],)) if vcpu in pins else None),
        )
        for vcpu in changed
    }


KIND = Kind(
    "dasec",
    lambda parameters: Dasec(
        parameters.of(TsaParameters), parameters.of(RlaParameters), parameters.of(RcrParameters)
    ),
    settings=(TsaParameters, RlaParameters, RcrParameters),
    edges=Level.EDGES,  # RLA follows wake-ups back to their sources (§4.2)
    rules={
        "tsa.raise": "it used up its slice and still wanted to run, so its part of the workload grows",
        "tsa.scale": "siblings got more, came or went, and the workload's sum stays as it was",
        "rla.start": "every vCPU starts with this rescheduling latency",
        "rla.cut": "it did not use up its slice and wanted to run, so it may start sooner",
        "rla.raise": "it used up its slice and sleeps, so it may start later",
        "rla.source": "it woke a vCPU that still waits and cannot start any sooner",
        "rcr.slices": "two vCPUs changed places to even out the slices of their cores",
        "rcr.latencies": "two vCPUs changed places to part those that want to start soon",
    },
)
