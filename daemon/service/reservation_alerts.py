"""Says of each reservation that cannot be kept why, and when it can be again."""

from __future__ import annotations

from collections.abc import Mapping

from ..log import Announcer
from ..model import Period, PolicyState
from ..record.entries import Entry
from ..reservations.keep import ReservationState


class ReservationAlerts:
    """Announces each once, and its end."""

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._said: frozenset[str] = frozenset()

    def write(self, entry: Entry, before: PolicyState) -> None:  # noqa: ARG002  # the interface of witnesses
        """After each period."""
        unkept = _unkept(entry.decision.state)
        if not unkept and not self._said:
            return
        for workload, why in unkept.items():
            self._announcer.state(_about(workload), f"{_about(workload)} is not kept: {why}")
        for workload in sorted(self._said - unkept.keys()):
            end = _end(workload, entry.period)
            self._announcer.state(_about(workload), None, f"{_about(workload)} {end}")
        self._said = frozenset(unkept)


def _unkept(state: PolicyState) -> Mapping[str, str]:
    """Why, by workload; the first reason of each."""
    found: dict[str, str] = {}
    if isinstance(state, ReservationState):
        for workload, why in state.unkept:
            found.setdefault(workload, why)
    return found


def _about(workload: str) -> str:
    return f"workload {workload}: reservation of CPUs"


def _end(workload: str, period: Period) -> str:
    there = any(each.name == workload and each.vcpus for each in period.workloads)
    return "is kept now" if there else "is over: it has no threads"
