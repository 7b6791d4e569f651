"""Workloads that are containers, named in the configuration by engine and name: "docker:web-*"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ...linux import cgroupfs, procfs
from ...linux.errors import HierarchyMissing
from ...linux.printable import printable
from ..discovery import SCAN_NS, Discovered, OnceEach
from ..processes import Selector, StaticWorkloads
from .directory import Container, ContainerDirectory
from .engines import stamps

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


class ContainerWorkloads:
    """Follows the containers. Each is a workload of its own: all threads in its group and below."""

    def __init__(
        self,
        rules: Sequence[ContainerRule],
        *,
        taken: frozenset[str] = frozenset(),
        root: Path = Path("/"),
        proc: str = procfs.PROC,
    ) -> None:
        self._rules, self._taken, self._proc = tuple(rules), taken, proc
        self._root = root
        self._stamps: dict[str, int] = {}
        self._changed_ns: int | None = None
        self._directory = ContainerDirectory(root, _hierarchy(proc), proc)
        self._selectors: tuple[Selector, ...] = ()
        self._threads = StaticWorkloads((), proc)
        self._looked_ns: int | None = None
        self._notices = OnceEach()

    def discover(self, clock_ns: int) -> Discovered:
        """Who belongs to which container now."""
        notices: tuple[str, ...] = ()
        now = stamps(self._root)
        changed, self._stamps = now != self._stamps, now
        if changed:
            self._changed_ns = clock_ns
        settling = self._changed_ns is not None and clock_ns - self._changed_ns < SETTLING_NS
        if settling or self._looked_ns is None or clock_ns - self._looked_ns >= SCAN_NS:
            self._looked_ns = clock_ns
            said: list[str] = []
            selectors = tuple(self._select(self._directory.look(), said))
            if selectors != self._selectors or changed:
                self._threads.close()
                self._selectors, self._threads = selectors, StaticWorkloads(selectors, self._proc)
            notices = self._notices.fresh([*self._directory.notices, *said])
        found = self._threads.discover(clock_ns)
        return Discovered(found.roster, notices + found.notices)

    def close(self) -> None:
        """Let all descriptors go."""
        self._threads.close()

    def _select(self, containers: Sequence[Container], notices: list[str]) -> Iterator[Selector]:
        """A selector for each container that opted in; the first rule that is about it counts."""
        names: set[str] = set(self._taken)
        heard: set[ContainerRule] = set()
        for container in containers:
            about = ((rule, rule.workload(container.name)) for rule in self._rules)
            rule, name = next(((rule, name) for rule, name in about if name is not None), (None, None))
            if rule is None or name is None:
                continue
            heard.add(rule)
            name = printable(name)
            if name in names:
                notices.append(
                    f"container {container.name} is left alone: there is another workload called {name}"
                )
                continue
            names.add(name)
            yield Selector(name, rule.share, cgroup=container.group)
        for rule in self._rules:
            if rule not in heard:
                notices.append(f"workload {rule.name}: no container {rule.pattern} runs at present")


def _hierarchy(proc: str) -> cgroupfs.Hierarchy | None:
    try:
        return cgroupfs.find_hierarchy(proc)
    except HierarchyMissing:
        return None
