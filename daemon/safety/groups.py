"""Remove cgroups of ours, innermost first, after their members have left for the group above."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..linux import cgroupfs, procfs
from ..linux.errors import HierarchyMissing, ThreadGone
from ..model import VcpuId
from .fate import Fate
from .journal.codec import Bequest
from .journal.ledger import is_directory_of
from .kernel import Kernel

PROBE_GROUP = "dasec-probe-"
"""And the process that probes (hosts/probe.py). No journal knows of it: a probe must work without one."""

_PROBE = re.compile(rf"{PROBE_GROUP}([0-9]+)-([0-9]+)")

_ROUNDS = 20
_PAUSE_S = 0.002
"""A thread on its way out holds its group for a moment."""


class GroupVerdict(NamedTuple):
    """One group of ours and what became of it."""

    path: str
    fate: Fate
    detail: str = ""


class Kinship:
    """Tells a thread that was born in a group of ours from one that somebody else put there."""

    def __init__(self, pids: frozenset[int], bequests: Sequence[Bequest], kernel: Kernel) -> None:
        """`pids`: the processes of which we hold threads."""
        self._pids = pids
        self._groups = [one for one in bequests if one.kind.found_anywhere]
        self._kernel = kernel

    def born_in(self, path: str, member: VcpuId) -> bool:
        """Is it of a family that we hold, or younger than our first move into this group?"""
        if self._kernel.related(member, self._pids):
            return True
        since = [one.since_ticks for one in self._groups if is_directory_of(path, one.value)]
        return bool(since) and member.start_ticks >= min(since)


def remove_groups(paths: Sequence[str], kinship: Kinship, kernel: Kernel) -> list[GroupVerdict]:
    """Remove these directories. A thread that was born in one goes to the nearest group that is
    not ours; where there is a thread that somebody else brought, the group stays."""
    ours = frozenset(paths)
    inner_first = sorted(ours, key=lambda path: path.count("/"), reverse=True)
    return [_remove(path, base_of(path, ours), kinship, kernel) for path in inner_first]


def base_of(path: str, ours: frozenset[str]) -> str:
    """The nearest directory above that is none of ours."""
    uppers = accumulate(path.split("/"), lambda upper, name: f"{upper}/{name}")
    return next(upper for upper in reversed(list(uppers)) if upper not in ours)


def _remove(path: str, base: str, kinship: Kinship, kernel: Kernel) -> GroupVerdict:
    try:
        for _ in range(_ROUNDS):
            if kernel.remove_group(path):
                return GroupVerdict(path, Fate.PUT_BACK)
            for member in kernel.members(path):
                if not kinship.born_in(path, member):
                    detail = f"{path}: somebody else put thread {member.tid} there"
                    return GroupVerdict(path, Fate.LEFT_ALONE, detail)
                try:
                    kernel.move(member, base)
                except ThreadGone:
                    continue
            time.sleep(_PAUSE_S)
    except Exception as error:  # whatever is wrong with one group: the others are still to be removed
        return GroupVerdict(path, Fate.FAILED, f"{path}: {error}")
    return GroupVerdict(path, Fate.FAILED, f"{path}: still in use")


def sweep_probes(proc: str = procfs.PROC) -> None:
    """Remove what was left by processes that were killed while they probed, where it is empty. Never raises:
    other things are more important than this."""
    try:
        hierarchy = cgroupfs.find_hierarchy(proc)
        groups = tuple(abandoned_probes(hierarchy, proc))
    except (OSError, HierarchyMissing, ThreadGone):
        return
    for group in groups:
        for each in reversed(hierarchy.below(group).groups):
            with contextlib.suppress(OSError):
                cgroupfs.remove_group(hierarchy.directory(each))


def abandoned_probes(hierarchy: cgroupfs.Hierarchy, proc: str = procfs.PROC) -> Iterator[str]:
    """The groups of processes that have ended while they probed; never those of a living one."""
    for group in hierarchy.children(hierarchy.root):
        found = _PROBE.fullmatch(group.rpartition("/")[2])
        if found and not _runs(int(found[1]), int(found[2]), proc):
            yield group


def probe_group() -> str:
    """The name of this process's group to try things in."""
    pid = os.getpid()
    return f"{PROBE_GROUP}{pid}-{procfs.read_stat(pid, pid).start_ticks}"


def _runs(pid: int, start_ticks: int, proc: str) -> bool:
    try:
        return procfs.read_stat(pid, pid, proc).start_ticks == start_ticks
    except ThreadGone:
        return False
    except OSError:
        return True
