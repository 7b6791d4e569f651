"""What the guard remembers from period to period."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from ..model import Knobs, PolicyState, VcpuId
from ..policy import UNSHOWN, layers_of
from .tally import Served, Services, Tally

S = TypeVar("S", bound=PolicyState)

KnobTable = tuple[tuple[VcpuId, Knobs], ...]


class Verdict(StrEnum):
    """What the last trial said of a workload."""

    UNTRIED = "untried"
    FINE = "fine"
    HARM = "harm"
    OTHERS = "others"
    """Neutral because the policy's work on other workloads did the harm."""


class GuardStanding(NamedTuple):
    """One workload: its verdict; by how much the policy stretched it (thousandths), seen in so many pairs of
    windows; until which period that holds; how many trials in a row found harm, and how many none; since
    which period it holds, and the median stretch that was seen without the policy."""

    workload: str
    verdict: Verdict = Verdict.UNTRIED
    ratio: int = 0
    pairs: int = 0
    until: int = 0
    failures: int = 0
    passes: int = 0
    since: int = 0
    level: int = 0

    @property
    def is_neutral(self) -> bool:
        """Must the policy leave it alone?"""
        return self.verdict is Verdict.HARM or self.verdict is Verdict.OTHERS


class Trial(NamedTuple):
    """A trial in progress: its present window (even: without the policy), how many of its periods are over,
    the knobs to come back to, what was measured in it, and the stretches in each window before it."""

    window: int = 0
    age: int = 0
    saved: KnobTable = ()
    counted: tuple[Served, ...] = ()
    tallies: tuple[Tally, ...] = ()
    windows: tuple[tuple[tuple[str, int], ...], ...] = ()

    @property
    def is_without(self) -> bool:
        """Is the present window one without the policy?"""
        return self.window % 2 == 0


@dataclass(frozen=True, slots=True)
class GuardState(PolicyState, Generic[S]):
    """`inner`: the policy's own state. `standings`: the verdicts. `window`: of the trial in progress, else
    -1. `by_demand`: it keeps the sum of weights by demand. `clock`: the time of the last look in periods, its
    number where no look came late; below 0 before the first. `prior`: of each vCPU the knobs that the policy
    wanted to change, before its first wish for each; the others are None. `services`, `tallies`: what is
    looked at between trials."""

    inner: S
    standings: tuple[GuardStanding, ...] = ()
    window: int = -1
    by_demand: bool = False
    clock: int = field(default=-1, metadata=UNSHOWN)
    prior: KnobTable = field(default=(), metadata=UNSHOWN)
    services: tuple[Services, ...] = field(default=(), metadata=UNSHOWN)
    tallies: tuple[Tally, ...] = field(default=(), metadata=UNSHOWN)
    trial: Trial | None = field(default=None, metadata=UNSHOWN)


def standings_in(state: PolicyState) -> tuple[GuardStanding, ...]:
    """The guard's standings; none without a guard."""
    return next((each.standings for each in layers_of(state) if isinstance(each, GuardState)), ())
