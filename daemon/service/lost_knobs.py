"""Knobs that the host has not, and those that it had when the daemon began: who puts our scheduler out takes
its knobs with it (docs/decisions/0123-lost-knobs.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..log import Announcer
from ..model import Capabilities, PolicyState
from ..record.entries import Entry


class LostKnobs:
    """Announces those that are lost, for as long as they are."""

    def __init__(self, capabilities: Callable[[], Capabilities], announcer: Announcer) -> None:
        self._capabilities, self._announcer = capabilities, announcer
        self._seen = capabilities()
        self._lacked = lacking(self._seen)

    def write(self, entry: Entry, before: PolicyState) -> None:  # noqa: ARG002  # the interface of witnesses
        """After each period."""
        now = self._capabilities()
        if now is self._seen:
            return
        self._seen = now
        lost = {name: why for name, why in lacking(now).items() if name not in self._lacked}
        whys = "; ".join(dict.fromkeys(lost.values()))
        trouble = f"{' and '.join(lost)}: not to be had any more until dasec is started again: {whys}"
        self._announcer.state("knobs", trouble if lost else None)


def lacking(found: Capabilities) -> Mapping[str, str]:
    """The knobs that a host has not, and why."""
    knobs = (
        ("weight", found.weight, found.weight_note),
        ("rescheduling latency", found.rescheduling_latency, found.rescheduling_latency_note),
        ("affinity", found.affinity, found.affinity_note),
    )
    return {name: why for name, works, why in knobs if not works}
