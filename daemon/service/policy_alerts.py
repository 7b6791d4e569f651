"""What an operator should know of a policy's state: the guard's verdicts, and who cannot be seen."""

from __future__ import annotations

from collections import Counter

from ..critical import CriticalState
from ..guard import GuardStanding, Verdict
from ..guard.judge import WHOLE
from ..guard.state import standings_in
from ..log import Announcer
from ..model import Period, PolicyState, Workload
from ..policy import layers_of
from ..record.entries import Entry
from .status import POLICY_OFF

BLIND_PERIODS = 25
"""A workload that competed in so many periods (two seconds), none of its wake-ups counted, is said to be
blind; in the period after a vCPU has come, its counters have no difference yet."""


def verdict_of(standing: GuardStanding, policy: str, period_ms: int) -> str:
    """The guard's verdict on one workload in one line."""
    if standing.verdict is Verdict.UNTRIED:
        return f"policy {policy} not tried yet"
    where = "of other workloads " if standing.verdict is Verdict.OTHERS else ""
    seen = (
        f"threads {where}that others wait for took {standing.ratio / WHOLE:.2f} times as long"
        f" with policy {policy} as without it ({standing.pairs} pairs of windows)"
    )
    if standing.verdict is Verdict.FINE:
        return f"no harm: {seen}"
    return f"{seen}: {POLICY_OFF} here for {(standing.until - standing.since) * period_ms / 1000:.0f} s"


def blind_in(state: PolicyState) -> tuple[str, ...]:
    """The workloads of which the policy sees nothing."""
    return next((each.blind for each in layers_of(state) if isinstance(each, CriticalState)), ())


class Remarks:
    """Announces both, each once, and when it ends."""

    def __init__(self, policy: str, period_ms: int, announcer: Announcer) -> None:
        self._policy, self._period_ms, self._announcer = policy, period_ms, announcer
        self._standings: tuple[GuardStanding, ...] = ()
        self._blind_for: Counter[str] = Counter()

    def write(self, entry: Entry, before: PolicyState) -> None:  # noqa: ARG002  # the interface of witnesses
        """After each period."""
        standings, blind = standings_in(entry.decision.state), blind_in(entry.decision.state)
        if standings is not self._standings:
            known = {standing.workload for standing in standings}
            for standing in self._standings:
                if standing.workload not in known:
                    self._announcer.state(_about(standing), None, f"{_about(standing)}gone")
            self._standings = standings
            for standing in standings:
                self._judge(standing)
        if blind or self._blind_for:
            self._blind_for.update(blind)
            self._see(entry.period)

    def turn(self, policy: str, parameters: object) -> None:  # noqa: ARG002  # the interface of who turns
        """Another policy decides from the next period on: what was said of the last one is over."""
        over = f"policy {policy} from now on"
        for standing in self._standings:
            self._announcer.state(_about(standing), None, f"{_about(standing)}{over}")
        for name in self._blind_for:
            self._announcer.state(f"blind {name}", None, f"workload {name}: {over}")
        self._policy, self._standings = policy, ()
        self._blind_for.clear()

    def _judge(self, standing: GuardStanding) -> None:
        about = _about(standing)
        trouble = about + verdict_of(standing, self._policy, self._period_ms) if standing.is_neutral else None
        self._announcer.state(about, trouble, f"{about}policy {self._policy} is tried again")

    def _see(self, period: Period) -> None:
        """Who is blind for long, and who is no more."""
        there = {workload.name: workload for workload in period.workloads}
        for name, periods in list(self._blind_for.items()):
            workload = there.get(name)
            if workload is None or _is_counted(workload, period):
                del self._blind_for[name]
                gone = "gone" if workload is None else "its wake-ups are counted now"
                self._announcer.state(f"blind {name}", None, f"workload {name}: {gone}")
            elif periods == BLIND_PERIODS:
                self._announcer.state(
                    f"blind {name}",
                    f"workload {name}: nobody counts its wake-ups, so policy {self._policy} leaves"
                    " it as it is: `dasec probe` says why, under wake edges",
                )


def _about(standing: GuardStanding) -> str:
    return f"workload {standing.workload}: guard: "


def _is_counted(workload: Workload, period: Period) -> bool:
    used = [period.usage.get(vcpu.id) for vcpu in workload.vcpus]
    return any(each is not None and (each.wakeups is not None or each.wakers) for each in used)
