"""Follows the runtimes' directories: which containers there are, by files that are read when they change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ...linux import procfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import HierarchyMissing, ThreadGone
from .engines import CRUNS_OWN, Home, called, homes, stamps
from .file_stamp import FileStamp, stamp_of
from .own_words import OwnWords
from .state_file import LARGEST, STATUS, ContainerClaim, NotAState, annotations_of, parse
from .systems import stamps as system_stamps
from .systems import systems

NOT_STARTED = "exec.fifo"
"""Is in a container's directory between create and start, while the runtime itself sits in the group."""


NOTHING: Mapping[str, str] = {}

OURS = "dasec-"


class Container(NamedTuple):
    """One that runs: its name with its engine's, its cpu group, and its annotations or labels.
    `has_init`: what is below its group is its own."""

    name: str
    group: str
    notes: Mapping[str, str] = NOTHING
    has_init: bool = False


class _Seat(NamedTuple):
    """A container's group. `has_init`: its first process has made groups below, and sits in one."""

    group: str
    has_init: bool


class ContainerDirectory:
    """The containers of this machine whose claims fit."""

    def __init__(self, root: Path, hierarchy: Hierarchy | None, proc: str = procfs.PROC) -> None:
        self._root, self._hierarchy, self._proc = root, hierarchy, proc
        self._known: dict[Home, tuple[FileStamp, ContainerClaim | None]] = {}
        self._own_words = OwnWords(root)
        self._waiting: tuple[Home, ...] = ()
        self._inodes: dict[str, int] = {}  # of the directories of systems' groups, at the last look
        self.notices: list[str] = []
        """What is wrong with single files, at the last look."""

    def look(self) -> tuple[Container, ...]:
        """Those that run now, each a process that started when its file says and sits where it says."""
        self.notices = []
        stamped = {home: _stamp(home) for home in homes(self._root)}
        present = {home: stamp for home, stamp in stamped.items() if stamp}
        self._waiting = tuple(home for home in stamped if home not in present)
        for home in self._known.keys() - present.keys():
            del self._known[home]
        self._own_words.look(present)
        found = []
        for home, stamp in present.items():
            claim = self._claim(home, stamp)
            seat = self._seat(claim) if claim else None
            if claim is None or seat is None:
                continue
            own = self._own_words.of(home)
            name = called(home, seat.group, claim.annotations, own.name)
            if name is not None:
                notes = {**own.labels, **claim.annotations}
                found.append(Container(name, seat.group, notes, seat.has_init))
        self._inodes.clear()
        if self._hierarchy is not None:
            for each in systems(self._root, self._hierarchy, self._proc):
                directory = self._hierarchy.directory(each.group)
                self._inodes[directory] = _inode(directory)
                found.append(Container(each.name, each.group, has_init=True))
        return tuple(sorted(found, key=lambda each: each[:2]))

    def has_started(self) -> bool:
        """Has one started, or got its file, that had not at the last look? Nothing else tells, and on a busy
        host it may be seconds from a container's making to its start. Or has a system started anew in a
        group of the same name?"""
        return any(map(_stamp, self._waiting)) or any(
            _inode(directory) != inode for directory, inode in self._inodes.items()
        )

    def stamps(self) -> Mapping[str, int]:
        """What changes when a container comes or goes."""
        by_group = {} if self._hierarchy is None else system_stamps(self._hierarchy)
        return stamps(self._root) | by_group

    def _claim(self, home: Home, stamp: FileStamp) -> ContainerClaim | None:
        known = self._known.get(home)
        if known is None or known[0] != stamp:
            known = self._known[home] = (stamp, self._read(home))
        return known[1]

    def _read(self, home: Home) -> ContainerClaim | None:
        path = f"{home.directory}/{home.file}"
        try:
            claim = parse(home.file, _content(path))
        except OSError as error:
            self.notices.append(f"container {home.id}: {path} is left alone: {error.strerror}")
            return None
        except NotAState as wrong:
            self.notices.append(f"container {home.id}: {path} is left alone: {wrong}")
            return None
        if home.file == STATUS and claim.bundle is not None:
            config = self._root / claim.bundle.lstrip("/") / "config.json"
            try:
                return claim._replace(annotations=annotations_of(_content(str(config))))
            except OSError:
                return claim
        return claim

    def _seat(self, claim: ContainerClaim) -> _Seat | None:
        """The container's group, if its process is the one that is meant and is in it."""
        if self._hierarchy is None:
            return None
        try:
            if procfs.read_stat(claim.pid, claim.pid, self._proc).start_ticks != claim.start_ticks:
                return None
            group = self._hierarchy.group_of(claim.pid, claim.pid, self._proc)
        except (ThreadGone, HierarchyMissing, OSError):
            return None
        parts = [
            part for part in group.split("/") if part
        ]  # none: the top is everybody's, and no container's
        above = ["/" + "/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]
        named = {*claim.groups}
        found = next((each for each in above if {each, self._hierarchy.directory(each)} & named), None)
        if found is None:
            return None
        deeper = group.removeprefix(found).strip("/")
        return _Seat(found, has_init=deeper not in ("", CRUNS_OWN) and not deeper.startswith(OURS))


def _inode(directory: str) -> int:
    """0 if there is none."""
    try:
        return os.stat(directory).st_ino
    except OSError:
        return 0


def _stamp(home: Home) -> FileStamp | None:
    try:
        if os.path.lexists(f"{home.directory}/{NOT_STARTED}"):
            return None
        status = os.lstat(f"{home.directory}/{home.file}")
    except OSError:
        return None
    return stamp_of(status)


def _content(path: str) -> bytes:
    """No link is followed, and nothing but a file is read. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(LARGEST)
