"""Systems with an init of their own: containers of LXC, Incus and LXD, and systemd-nspawn's machines.

No runtime writes a file of these. LXC (and what is built on it) makes two groups at the top, one for the
system and one for the process that watches it; systemd-nspawn makes a scope with a group for each of the two.
What lies below is the system's own: it gets no group of ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ...linux import procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone

LXC, INCUS, LXD, NSPAWN = ENGINES = ("lxc", "incus", "lxd", "nspawn")

PAYLOAD, MONITOR = "lxc.payload.", "lxc.monitor."
"""Since LXC 4.0; a number follows the name where such a group was left over from before."""

_WATCHING = re.compile(rb"\[lxc monitor\] (?P<place>/.*) (?P<name>[^ /]+)")
"""What the monitor calls itself."""

MACHINES = "machine.slice"
REGISTERED = "run/systemd/machines"
_SCOPE = re.compile(
    r"(?:machine-(?!qemu\\x2d|lxc\\x2d)(?P<scope>.+)\.scope|systemd-nspawn@(?P<unit>.+)\.service)"
)
"""Those of libvirt begin with its drivers' names, and are no systems to us."""

_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


class System(NamedTuple):
    """One that runs: its name with its engine's, and the group with all of it but its watcher."""

    name: str
    group: str


def systems(root: Path, hierarchy: Hierarchy, proc: str = procfs.PROC) -> Iterator[System]:
    """Those that run now below `root`, the machine's."""
    top = hierarchy.root.rstrip("/")
    groups = hierarchy.children(hierarchy.root)
    watchers = dict(
        _watchers(hierarchy, (group for group in groups if group.startswith(f"{top}/{MONITOR}")), proc)
    )
    for group in groups if watchers else ():
        if group.startswith(f"{top}/{PAYLOAD}") and (name := _watched(hierarchy, group, watchers, proc)):
            yield System(name, group)
    for group in hierarchy.children(f"{top}/{MACHINES}"):
        named = _SCOPE.fullmatch(group.rpartition("/")[2])
        if named is None:
            continue
        name = _unescaped(named["scope"] or named["unit"])
        inside = {child.rpartition("/")[2] for child in hierarchy.children(group)}
        if {"payload", "supervisor"} <= inside and (root / REGISTERED / name).is_file():
            yield System(f"{NSPAWN}:{name}", f"{group}/payload")


def stamps(hierarchy: Hierarchy) -> dict[str, int]:
    """How many groups there are where systems come and go."""
    found = {}
    for group in (hierarchy.root, f"{hierarchy.root.rstrip('/')}/{MACHINES}"):
        try:
            found[group] = os.stat(hierarchy.directory(group) or "/").st_nlink
        except OSError:
            continue
    return found


def _watchers(hierarchy: Hierarchy, groups: Iterable[str], proc: str) -> Iterator[tuple[int, str]]:
    """The monitors in these groups, and what each one's system is called."""
    for watcher in (member for group in groups for member in hierarchy.members(group)):
        try:
            said = procfs.read_bytes(f"{proc}/{watcher}/cmdline").replace(b"\0", b" ").rstrip()
        except (ThreadGone, OSError):
            continue
        words = _WATCHING.fullmatch(said)
        if words is not None:
            yield watcher, f"{_engine(words['place'])}:{words['name'].decode(errors='replace')}"


def _watched(hierarchy: Hierarchy, payload: str, watchers: Mapping[int, str], proc: str) -> str | None:
    """What the system in that group is called: by the monitor that is the parent of somebody in it. The names
    of the two groups may differ: each has a number of its own where one was left over."""
    for group in hierarchy.below(payload).groups:
        for member in hierarchy.members(group):
            if (name := watchers.get(_parent(member, proc))) is not None:
                return name
    return None


def _parent(member: int, proc: str) -> int:
    try:
        return procfs.parse_parent(procfs.read_bytes(f"{proc}/{member}/stat"))
    except (ThreadGone, OSError):
        return 0


def _engine(place: bytes) -> str:
    """By where its containers lie: /var/lib/incus/containers."""
    parts = place.split(b"/")
    return next((engine for engine in (INCUS, LXD) if engine.encode() in parts), LXC)


def _unescaped(name: str) -> str:
    """As `systemd-escape --unescape` does for names of machines, which have no other characters."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)
