"""The guard: a policy around a policy, which lets it act only where that does no harm."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..model import Decision, Knobs, Period, PolicyState, Vcpu, VcpuId, Workload
from ..policy import Policy
from .parameters import GuardParameters
from .state import GuardState, KnobTable, Trial
from .switch import NEUTRAL, WITH, WITHOUT, fitting, followed, held, intended, noted, sparing, towards
from .tally import added
from .trial import is_whole, judged, measured
from .verdicts import concluded, introduced, passes_of, present, retried, suspected

LOOK = 4
"""Periods of a look between trials: with four pairs after it, harm that came later is found in 13."""

LEAST_BUSY_PERCENT = 1
"""A workload whose vCPUs wanted to run for less of a core's time in a period is idle: nothing can be told."""

NO_WISHES: Mapping[VcpuId, Knobs] = MappingProxyType({})

Known = GuardState[PolicyState]


RULES: Mapping[str, str] = MappingProxyType(
    {
        "guard.without": "the guard looks how the workload does without the policy",
        "guard.with": "the guard looks how the workload does with the policy: as the policy had it",
        "guard.neutral": "the guard has found harm, so the policy is off here",
    }
)
"""What each of its reasons means, in words for an operator."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """Lets the inner policy act, tries now and then what happens without it, and keeps it from harm."""

    inner: Policy
    parameters: GuardParameters = field(default_factory=GuardParameters)

    @property
    def name(self) -> str:
        """The inner policy's: the guard is a setting of it."""
        return self.inner.name

    def initial_state(self) -> PolicyState:
        """Nobody tried yet."""
        return GuardState(self.inner.initial_state())

    def decide(self, period: Period, state: PolicyState) -> Decision:
        """What the inner policy wants, where it may; nothing of it in a window without it."""
        known = state if isinstance(state, GuardState) else GuardState(self.inner.initial_state())
        clock = _clock(period, known, self.parameters.period_ns)
        is_look = clock // LOOK != known.clock // LOOK
        known = replace(known, clock=clock, prior=followed(known.prior, period))
        period = replace(period, index=clock)
        if known.trial is not None:
            return self._try(period, known, known.trial)
        if known.prior:
            known = _reviewed(period, known, is_look=is_look)
            if _is_due(period, known):
                return _stand_back(period, replace(known, tallies=()), Trial(window=-1))
            if is_look and (undone := _left_alone(period, known)):
                return undone
        return self._act(period, known)

    def _act(self, period: Period, known: Known) -> Decision:
        """The inner policy's decision; while no trial is on, with its rest, and as late as it may be."""
        decision, known = self._consider(period, known)
        if known.trial is not None:
            wished = decision.knobs, decision.reasons, known, decision.stakes
            return Decision(*wished, workloads=decision.workloads, sums=decision.sums)
        return replace(decision, state=known)

    def _consider(self, period: Period, known: Known) -> tuple[Decision, Known]:
        """The inner policy's decision without what it wants for workloads that it must leave alone, and what
        is known after it."""
        decision = self.inner.decide(period, known.inner)
        by_demand = known.by_demand or bool(decision.stakes)
        neutral = [each.workload for each in known.standings if each.is_neutral]
        if neutral:
            spared = {vcpu.id for _, vcpu in _vcpus(period, neutral)}
            decision = sparing(decision, spared, period)
        prior = known.prior
        if decision.knobs:
            prior = noted(prior, decision.knobs, period)
        return decision, replace(known, inner=decision.state, by_demand=by_demand, prior=prior)

    def _try(self, period: Period, known: Known, trial: Trial) -> Decision:
        """One period of a trial."""
        trial, services = measured(trial, known.services, period)
        known = replace(known, services=services, trial=trial)
        if not is_whole(trial):
            return Decision(state=known)
        if trial.is_without:
            return self._come_back(period, known, trial)
        judgement = judged(trial, self.parameters.harm_percent, passes_of(known.standings))
        if not judgement.is_over:
            decision, known = self._consider(period, known)
            return _stand_back(period, known, trial, decision.knobs)
        changed = {vcpu for vcpu, _ in held(known.prior, period)}
        holding = {
            each.name for each in period.workloads if not changed.isdisjoint([vcpu.id for vcpu in each.vcpus])
        }
        standings = introduced(known.standings, sorted(holding), period)
        standings = concluded(standings, trial, judgement, holding, period, self.parameters)
        known = replace(known, standings=standings, window=-1, trial=None)
        return _left_alone(period, known) or self._act(period, known)

    def _come_back(self, period: Period, known: Known, trial: Trial) -> Decision:
        """A window with the policy begins. One that keeps the sum by demand finds its weights anew; one that
        goes step by step gets back what it had, and the next step."""
        window = trial.window + 1
        known = replace(known, window=window, trial=trial._replace(window=window, age=0))
        if known.by_demand:
            return self._act(period, known)
        back = fitting(trial.saved, known.prior, period)
        return towards(period, known.prior, back, WITH, known)


def _stand_back(
    period: Period, known: Known, trial: Trial, wishes: Mapping[VcpuId, Knobs] = NO_WISHES
) -> Decision:
    """A window without the policy begins: every knob as before it, all workloads at once. What the policy
    wishes now it gets in its next window."""
    window = trial.window + 1
    trial = trial._replace(window=window, age=0, saved=intended(known.prior, wishes, period))
    known = replace(known, window=window, trial=trial)
    return towards(period, known.prior, dict(known.prior), WITHOUT, known)


def _left_alone(period: Period, known: Known) -> Decision | None:
    """Knobs as before the policy for the workloads that it must leave alone; None if they are so."""
    why = {each.workload: (("ratio", each.ratio), ("pairs", each.pairs)) for each in known.standings}
    seen = {
        vcpu.id: why[name]
        for name, vcpu in _vcpus(period, [each.workload for each in known.standings if each.is_neutral])
    }
    prior: KnobTable = tuple([(vcpu, was) for vcpu, was in known.prior if vcpu in seen])
    decision = towards(period, prior, dict(prior), NEUTRAL, known, seen)
    return decision if decision.knobs else None


def _clock(period: Period, known: Known, period_ns: int) -> int:
    """The time in periods: a look that comes late, as looking has a budget, counts for as many."""
    if known.clock < 0:
        return period.index
    return known.clock + max(1, round(period.length_ns / period_ns))


def _reviewed(period: Period, known: Known, *, is_look: bool) -> Known:
    """With workloads that are new, that may be acted on again, or that wait suspiciously long."""
    standings = retried(present(known.standings, period), period.index)
    if len(standings) < len(period.workloads):
        touched = {vcpu for vcpu, _ in known.prior}
        new = [each for each in period.workloads if not touched.isdisjoint([vcpu.id for vcpu in each.vcpus])]
        standings = introduced(standings, [each.name for each in new if _is_busy(each, period)], period)
    tallies = known.tallies
    if known.services:
        tallies = added(tallies, known.services, period)
        if is_look:
            standings, tallies = suspected(standings, tallies, period.index), ()
    if standings is known.standings and tallies is known.tallies:
        return known
    return replace(known, standings=standings, tallies=tallies)


def _is_due(period: Period, known: Known) -> bool:
    """Whether the time has come to try a workload that competes, and on which the policy has an effect."""
    due = {each.workload for each in known.standings if each.until <= period.index and not each.is_neutral}
    if not due:
        return False
    changed = {vcpu for vcpu, _ in held(known.prior, period)}
    return any(
        workload.name in due
        and not changed.isdisjoint([vcpu.id for vcpu in workload.vcpus])
        and _is_busy(workload, period)
        for workload in period.workloads
    )


def _is_busy(workload: Workload, period: Period) -> bool:
    used = [period.usage.get(vcpu.id) for vcpu in workload.vcpus]
    busy_ns = sum([each.consumed_ns + each.ready_ns for each in used if each])
    return busy_ns * 100 >= period.length_ns * LEAST_BUSY_PERCENT


def _vcpus(period: Period, names: Collection[str]) -> list[tuple[str, Vcpu]]:
    """The vCPUs of these workloads, each with its workload's name."""
    return [
        (workload.name, vcpu)
        for workload in period.workloads
        if workload.name in names
        for vcpu in workload.vcpus
    ]
