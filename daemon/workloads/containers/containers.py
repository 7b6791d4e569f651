"""Workloads that are containers, named in the configuration by engine and name ("docker:web-*"), or by their
own annotations or labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ...linux import cgroupfs, procfs
from ...linux.errors import HierarchyMissing
from ...linux.printable import printable
from ...model import CpuWish
from ...roster import RosterEntry, Terms
from ..discovery import SCAN_NS, Discovered, OnceEach
from ..processes import Selector, StaticWorkloads
from .consent import NotedConsent, consent
from .directory import Container, ContainerDirectory

SETTLING_NS = 2_000_000_000
"""How long after a container came or went all are looked at in every period: its directory comes before its
file, and before its first process is more than the runtime's."""

_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class ContainerRule:
    """One configured workload: the container of that name, or every container that a pattern matches."""

    name: str
    pattern: str
    share: int | None = None

    def workload(self, container: str) -> str | None:
        """What the container is called as a workload; None: the rule is not about it."""
        if not _WILDCARDS & set(self.pattern):
            return self.name if container == self.pattern else None
        return container if fnmatchcase(container, self.pattern) else None


class _Named(NamedTuple):
    """A container as a workload: its name, its share, and what is wrong with what it says itself."""

    name: str
    share: int | None
    complaints: tuple[str, ...] = ()
    wish: CpuWish | None = None


class ContainerWorkloads:
    """Follows the containers. Each is a workload of its own: all threads in its group and below.

    `most_share`: containers may opt in by themselves, with a share up to this one (None: they may not).
    `may_reserve`: those may ask for CPUs of their own.
    `taken`: names that other workloads have.
    """

    def __init__(
        self,
        rules: Sequence[ContainerRule],
        *,
        most_share: int | None = None,
        may_reserve: bool = False,
        taken: frozenset[str] = frozenset(),
        root: Path = Path("/"),
        proc: str = procfs.PROC,
    ) -> None:
        self._rules, self._taken, self._proc = tuple(rules), taken, proc
        self._most_share, self._may_reserve = most_share, may_reserve
        self._stamps: Mapping[str, int] = {}
        self._changed_ns: int | None = None
        self._directory = ContainerDirectory(root, _hierarchy(proc), proc)
        self._selectors: tuple[Selector, ...] = ()
        self._with_init: set[str] = set()
        self._wishes: dict[str, CpuWish] = {}
        self._threads = StaticWorkloads((), proc)
        self._looked_ns: int | None = None
        self._notices = OnceEach()
        self._found: tuple[RosterEntry, ...] = ()
        self._roster: tuple[RosterEntry, ...] = ()

    def discover(self, clock_ns: int) -> Discovered:
        """Who belongs to which container now."""
        notices: tuple[str, ...] = ()
        now = self._directory.stamps()
        changed, self._stamps = now != self._stamps or self._directory.has_started(), now
        if changed:
            self._changed_ns = clock_ns
        settling = self._changed_ns is not None and clock_ns - self._changed_ns < SETTLING_NS
        if settling or self._looked_ns is None or clock_ns - self._looked_ns >= SCAN_NS:
            self._looked_ns = clock_ns
            said: list[str] = []
            before = set(self._with_init), dict(self._wishes)
            selectors = tuple(self._select(self._directory.look(), said))
            if selectors != self._selectors or before != (self._with_init, self._wishes) or changed:
                self._threads.close()
                self._selectors, self._threads = selectors, StaticWorkloads(selectors, self._proc)
            notices = self._notices.fresh([*self._directory.notices, *said])
        found = self._threads.discover(clock_ns)
        if found.roster is not self._found:
            self._found = found.roster
            self._roster = tuple(map(self._with_terms, found.roster))
        return Discovered(self._roster, notices + found.notices)

    def close(self) -> None:
        """Let all descriptors go."""
        self._threads.close()

    def _select(self, containers: Sequence[Container], notices: list[str]) -> Iterator[Selector]:
        """A selector for each container that opted in; the first rule that is about it counts."""
        names: set[str] = set(self._taken)
        self._with_init.clear()
        self._wishes.clear()
        for container in containers:
            called = self._called(container)
            if called is None:
                continue
            about = f"container {printable(container.name)}"
            notices += [f"{about}: {one}" for one in called.complaints]
            if called.name in names:
                notices.append(f"{about} is left alone: there is another workload called {called.name}")
                continue
            names.add(called.name)
            if container.has_init:
                self._with_init.add(called.name)
            if called.wish is not None:
                self._wishes[called.name] = called.wish
            yield Selector(called.name, called.share, cgroup=container.group)
        for rule in self._rules:
            if not any(rule.workload(container.name) for container in containers):
                notices.append(f"workload {rule.name}: no container {rule.pattern} runs at present")

    def _called(self, container: Container) -> _Named | None:
        """What it is as a workload; None: it did not opt in. The first rule that is about it comes first."""
        own = None
        if self._most_share is not None:
            own = consent(container.notes, self._most_share, may_reserve=self._may_reserve)
        share, complaints, wish = own if own is not None else NotedConsent()
        for rule in self._rules:
            name = rule.workload(container.name)
            if name is not None:
                return _Named(printable(name), share if rule.share is None else rule.share, complaints, wish)
        return _Named(printable(container.name), share, complaints, wish) if own is not None else None

    def _with_terms(self, entry: RosterEntry) -> RosterEntry:
        """The groups of a system with an init of its own are its own."""
        entry = entry._replace(wish=self._wishes.get(entry.name))
        if entry.name not in self._with_init:
            return entry
        return entry._replace(terms=tuple(Terms(birth, None) for birth in entry.births), births=())


def _hierarchy(proc: str) -> cgroupfs.Hierarchy | None:
    try:
        return cgroupfs.find_hierarchy(proc)
    except HierarchyMissing:
        return None
