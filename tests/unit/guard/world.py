"""A world in which weights have effects: periods go through decide → plan → apply, and what the weights are
then says how long the threads that siblings wait for will wait."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dasec.guard import Guarded, GuardParameters, GuardStanding, GuardState
from dasec.model import Core, Decision, Knob, Knobs, Period, PolicyState, Reason, VcpuId
from dasec.period import seat
from dasec.plan import plan
from dasec.policy import Policy

from ...builders import RUNNING, Group, Row, core_set, period, vcpu_id
from ...properties.invariants import after

MAIN, HELPER, BATCH = 0, 1, 2
NEUTRAL = 1024

Stretch = Callable[[str, bool], float]
"""How many times its computing a thread that is waited for takes, in a workload of that name, while the
policy's weights are in force or not."""


@dataclass(frozen=True)
class Favours:
    """Gives the batch thread of each named workload half more weight, at the cost of main."""

    workloads: Sequence[str]
    name: str = "favours"

    def initial_state(self) -> PolicyState:
        return PolicyState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        knobs: dict[VcpuId, Knobs] = {}
        reasons: list[Reason] = []
        for workload in period.workloads:
            if workload.name in self.workloads:
                for row, wanted in ((MAIN, NEUTRAL // 2), (BATCH, NEUTRAL // 2 * 3)):
                    vcpu = workload.vcpus[row].id
                    if vcpu in period.knobs and period.knobs[vcpu].weight != wanted:
                        knobs[vcpu] = Knobs(wanted, None, None)
                        reasons.append(Reason(vcpu, Knob.WEIGHT, "favours"))
        return Decision(knobs, tuple(reasons), state)


@dataclass
class World:
    """Some workloads, each with main, a helper and a batch thread, under a guarded policy."""

    stretch: Stretch
    names: Sequence[str] = ("a", "b")
    acts_on: Sequence[str] | None = None
    parameters: GuardParameters = field(default_factory=GuardParameters)
    counted: bool = True
    noise: float = 0.0
    seed: int = 1
    inner: Policy | None = None
    cores: int = 2
    allowed: Sequence[int] = (0, 1)

    def __post_init__(self) -> None:
        acts_on = self.names if self.acts_on is None else self.acts_on
        self.policy = Guarded(self.inner or Favours(acts_on), self.parameters)
        self.state: PolicyState = self.policy.initial_state()
        self.knobs: Mapping[VcpuId, Knobs] = {}
        self.first: Mapping[VcpuId, Knobs] = {}
        self.index = 0
        self.chance = random.Random(self.seed)
        self.history: list[tuple[Period, Decision]] = []
        self.asleep: set[str] = set()

    @property
    def standings(self) -> dict[str, GuardStanding]:
        assert isinstance(self.state, GuardState)
        return {standing.workload: standing for standing in self.state.standings}

    def in_force(self) -> bool:
        """Has anybody a knob that is not as it was?"""
        return self.knobs != self.first

    def run(self, periods: int) -> None:
        for _ in range(periods):
            self.step()

    def run_until(self, condition: Callable[[], bool], at_most: int) -> int:
        """How many periods it takes."""
        for count in range(at_most):
            if condition():
                return count
            self.step()
        raise AssertionError(f"not within {at_most} periods: {self.standings}")

    def step(self, late: int = 1) -> None:
        """A look, so many periods after the one before."""
        made = self._period()
        made = replace(made, length_ns=made.length_ns * late)
        decision = self.policy.decide(made, self.state)
        assert decision == self.policy.decide(made, self.state)
        planned = plan(made, decision)
        assert planned.violations == ()
        self.history.append((made, decision))
        self.knobs = after(made, planned).knobs
        self.state = decision.state
        self.index += 1

    def allow(self, *allowed: int) -> None:
        """An administrator lets all threads use these cores; masks that nobody holds are these then."""
        before, self.allowed = core_set(*self.allowed), allowed
        self.knobs, self.first = (
            {
                vcpu: knobs._replace(affinity=core_set(*allowed)) if knobs.affinity == before else knobs
                for vcpu, knobs in table.items()
            }
            for table in (self.knobs, self.first)
        )

    def masks(self) -> set[frozenset[Core] | None]:
        return {knobs.affinity for knobs in self.knobs.values()}

    def rules_of(self, knob: Knob) -> set[str]:
        """Why a knob of that kind was ever to be written."""
        reasons = [reason for _, decision in self.history for reason in decision.reasons]
        return {reason.rule for reason in reasons if reason.knob is knob}

    def _period(self) -> Period:
        made = period(*map(self._group, self.names), cores=self.cores, index=self.index)
        self.first = self.first or made.knobs
        if self.knobs:
            made = replace(made, knobs=self.knobs)
        assert all(seat(made, vcpu) is not None for vcpu in made.knobs)
        return made

    def _group(self, name: str) -> Group:
        if name in self.asleep:
            return Group(name, [Row(allowed=self.allowed)] * 3)
        stretch = self.stretch(name, self.in_force()) * self.chance.lognormvariate(0, self.noise)
        ready_ms = 8 * max(0.0, stretch - 1)
        rows = [
            Row(8, RUNNING, ready_ms=ready_ms, woken_by=[(HELPER, 16)], wakeups=16),
            Row(8, RUNNING, ready_ms=ready_ms, woken_by=[(MAIN, 16)], wakeups=16),
            Row(20, RUNNING, ready_ms=20, dispatches=2, wakeups=2),
        ]
        if not self.counted:
            rows = [replace(row, woken_by=(), wakeups=None) for row in rows]
        return Group(name, [replace(row, allowed=self.allowed) for row in rows])


def batch(group: int) -> VcpuId:
    """The batch thread of a workload."""
    return vcpu_id(group, BATCH)
