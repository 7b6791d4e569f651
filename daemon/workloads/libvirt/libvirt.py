"""Workloads that are libvirt's QEMU domains: named in the configuration, or by their own <metadata>.

libvirtd is never called (docs/decisions/0019-libvirt.md): its status files say what runs, /proc confirms it.
So neither a hanging nor a restarting libvirtd is felt here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from ...linux import cgroupfs, procfs
from ...linux.errors import HierarchyMissing
from ...linux.printable import printable
from ...roster import RosterEntry
from ..discovery import SCAN_NS, Discovered, OnceEach
from . import qemu
from .qemu import Sighting
from .status_directory import DIRECTORY, StatusDirectory
from .status_file import DomainStatus

SETTLING_NS = 2_000_000_000
"""How long after a change of its file a domain that is not complete is looked at in every period. libvirt
makes groups and masks of a new vCPU within milliseconds; after that, once a second is enough."""

_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Rule:
    """One configured workload: the domain of that name, or every domain that a pattern matches."""

    name: str
    pattern: str
    share: int | None = None

    def workload(self, domain: str) -> str | None:
        """What the domain is called as a workload; None: the rule is not about it. Each domain is a workload
        of its own, so a pattern's name comes before the domain's."""
        if not _WILDCARDS & set(self.pattern):
            return self.name if domain == self.pattern else None
        return f"{self.name}/{domain}" if fnmatchcase(domain, self.pattern) else None


class LibvirtWorkloads:
    """Follows the domains. While nothing changes it returns the same roster object.

    `by_metadata`: domains may opt in by themselves. `with_emulator`: QEMU's main thread belongs to its
    domain, too. `taken`: names that other workloads have.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        by_metadata: bool = False,
        with_emulator: bool = False,
        taken: frozenset[str] = frozenset(),
        directory: str = DIRECTORY,
        proc: str = procfs.PROC,
    ) -> None:
        self._rules = tuple(rules)
        self._by_metadata = by_metadata
        self._with_emulator = with_emulator
        self._taken = taken
        self._proc = proc
        self._files = StatusDirectory(directory)
        self._hierarchy = _hierarchy(proc)
        self._sightings: dict[str, Sighting] = {}
        self._changed_ns: dict[str, int] = {}
        self._checked_ns: int | None = None
        self._notices = OnceEach()
        self._roster: tuple[RosterEntry, ...] = ()

    def discover(self, clock_ns: int) -> Discovered:
        """Who belongs to which domain now."""
        files = self._files
        files.look(clock_ns)
        again = self._checked_ns is None or clock_ns - self._checked_ns >= SCAN_NS
        settling = self._settling(clock_ns)
        if not (files.changed or settling or again):
            return Discovered(self._roster, (), files.trouble)
        self._sight(files.changed | settling)
        self._changed_ns |= dict.fromkeys(files.changed & self._sightings.keys(), clock_ns)
        if again:
            self._checked_ns = clock_ns
            self._sight({name for name in self._sightings if not self._is_as_sighted(name)})
        notices = [files.notices[name] for name in sorted(files.notices)]
        roster = tuple(self._entries(notices))
        if roster != self._roster:
            self._roster = roster
        # Who is left out at first is mostly still on its way: it is said if it lasts until the next check.
        return Discovered(self._roster, self._notices.fresh(notices) if again else (), files.trouble)

    def close(self) -> None:
        """Nothing is held open."""

    def _settling(self, clock_ns: int) -> set[str]:
        """Domains whose threads were not all where they belong when libvirt wrote its file a moment ago."""
        return {
            name
            for name, sighting in self._sightings.items()
            if sighting.left_out and clock_ns - self._changed_ns.get(name, clock_ns) < SETTLING_NS
        }

    def _is_as_sighted(self, name: str) -> bool:
        sighting = self._sightings[name]
        return not sighting.left_out and qemu.still_there(self._files.domains[name], sighting, self._proc)

    def _sight(self, names: set[str]) -> None:
        for name in names:
            status = self._files.domains.get(name)
            if status is None or self._called(status) is None:
                self._sightings.pop(name, None)
                self._changed_ns.pop(name, None)
            else:
                sight = qemu.sight_with_emulator if self._with_emulator else qemu.sight
                self._sightings[name] = sight(status, self._hierarchy, self._proc)

    def _called(self, status: DomainStatus) -> _Called | None:
        """What the domain is as a workload; None: it did not opt in. The configuration is heard first."""
        opt_in = status.opt_in if self._by_metadata else None
        own_share = opt_in.share if opt_in is not None else None
        for rule in self._rules:
            name = rule.workload(status.name)
            if name is not None:
                name = printable(name)
                return _Called(name, own_share if rule.share is None else rule.share, name in self._taken)
        if opt_in is None:
            return None
        name = printable(status.name)
        return _Called(name, own_share, name in self._taken | {rule.name for rule in self._rules})

    def _entries(self, notices: list[str]) -> Iterator[RosterEntry]:
        names: set[str] = set()
        running = {file: self._files.domains[file] for file in sorted(self._sightings)}
        for file, status in running.items():
            called, sighting = self._called(status), self._sightings[file]
            assert called is not None, "only domains that opted in are sighted"
            about = f"libvirt domain {status.name}"
            if status.opt_in is not None and self._by_metadata:
                notices += [f"{about}: its <metadata>: {one}" for one in status.opt_in.complaints]
            notices += [f"{about}: {one}: left alone" for one in sighting.left_out]
            if called.clash or called.name in names:
                notices.append(f"{about} is left alone: there is another workload called {called.name}")
                continue
            names.add(called.name)
            yield RosterEntry(called.name, called.share, sighting.threads, sighting.terms, sighting.home)
        for rule in self._rules if self._files.trouble is None else ():
            if not any(rule.workload(status.name) for status in running.values()):
                notices.append(f"workload {rule.name}: no libvirt domain {rule.pattern} runs at present")


class _Called(NamedTuple):
    """A domain as a workload; `clash`: another workload has that name."""

    name: str
    share: int | None
    clash: bool


def _hierarchy(proc: str) -> cgroupfs.Hierarchy | None:
    try:
        return cgroupfs.find_hierarchy(proc)
    except HierarchyMissing:
        return None
