"""What a dry run would have written, for whoever tries a configuration before it counts."""

from __future__ import annotations

from pathlib import Path

from ..model import Knob, Outcome, PolicyState, VcpuId
from ..record.entries import Entry


class Unwritten:
    """A knob counts once: nobody writes it, so it is wished for again at every look."""

    def __init__(self, record: Path | None) -> None:
        self._record = record
        self._knobs: set[tuple[VcpuId, Knob]] = set()
        self._rules: set[str] = set()

    def write(self, entry: Entry, before: PolicyState) -> None:  # noqa: ARG002  # the interface of witnesses
        """After each period."""
        for result in entry.results:
            if result.outcome is Outcome.DRY_RUN:
                self._knobs.add((result.change.vcpu, result.change.knob))
                self._rules.add(result.change.rule)

    def line(self) -> str:
        """All of it, and where each reason is."""
        if not self._knobs:
            return "dry run: no knob would have been written"
        threads, rules = len({vcpu for vcpu, _ in self._knobs}), ", ".join(sorted(self._rules))
        knobs = f"{len(self._knobs)} knob{'' if len(self._knobs) == 1 else 's'}"
        vcpus = f"{threads} vCPU{'' if threads == 1 else 's'}"
        said = f"{knobs} of {vcpus} would have been written by {rules}"
        how = f"`dasec explain WORKLOAD --record {self._record or 'FILE'}`"
        return f"dry run: {said}; {how} says why" + ("" if self._record else ", of a run with --record FILE")
