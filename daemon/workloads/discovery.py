"""What every kind of discovery hands over, and how several are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..roster import RosterEntry

SCAN_NS = 1_000_000_000
"""Scans of /proc, of cgroup trees and of libvirt's files are made at most once a second."""


class Discovered(NamedTuple):
    """Who belongs to which workload now, what an operator should hear (each notice once), and why a whole
    kind of workload cannot be found at present."""

    roster: tuple[RosterEntry, ...]
    notices: tuple[str, ...]
    trouble: str | None = None


class Discovery(Protocol):
    """Finds workloads. While nothing changes it returns the same roster object."""

    def discover(self, clock_ns: int) -> Discovered:
        """Who belongs to which workload now."""

    def close(self) -> None:
        """Let all descriptors go."""


class OnceEach:
    """Lets a notice through once; one that has ceased to hold may be given again later."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def fresh(self, notices: Sequence[str]) -> tuple[str, ...]:
        """Those of all present notices that were not given yet."""
        new = tuple(notice for notice in dict.fromkeys(notices) if notice not in self._said)
        self._said = set(notices)
        return new


class Together:
    """Two discoveries as one. A thread that both find belongs to the first (Host.observe sees to it)."""

    def __init__(self, first: Discovery, second: Discovery) -> None:
        self.first = first
        self._parts = (first, second)
        self._rosters: tuple[tuple[RosterEntry, ...], ...] = ()
        self._roster: tuple[RosterEntry, ...] = ()

    def discover(self, clock_ns: int) -> Discovered:
        """See Discovery."""
        found = [part.discover(clock_ns) for part in self._parts]
        rosters = tuple(one.roster for one in found)
        if len(rosters) != len(self._rosters) or any(map(_differ, rosters, self._rosters)):
            self._rosters = rosters
            self._roster = sum(rosters, ())
        notices = sum((one.notices for one in found), ())
        return Discovered(self._roster, notices, next((one.trouble for one in found if one.trouble), None))

    def close(self) -> None:
        """See Discovery."""
        for part in self._parts:
            part.close()


def _differ(one: tuple[RosterEntry, ...], other: tuple[RosterEntry, ...]) -> bool:
    return one is not other
