"""The cpu cgroup hierarchy, v1 or v2: where it is, who is in which group, weights, groups of our own.

On a hybrid host cpu sits on v1 although v2 is mounted as well; then v1 is the one that counts.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .. import cpulist
from . import procfs
from .errors import HierarchyMissing, ThreadGone

V1_WEIGHT, V2_WEIGHT = "cpu.shares", "cpu.weight"

_TWO_NUMBERS = 24
"""Bytes: a thread id has ten digits at most."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy. `root` is the group that the mount shows at its top."""

    version: int
    mount: str
    root: str
    controller: str = "cpu"

    def directory(self, group: str) -> str:
        """The directory of a group named as /proc names it."""
        inside = group if self.root == "/" else group.removeprefix(self.root)
        return self.mount + inside.rstrip("/")

    def weight_file(self, group: str) -> str:
        """The file that holds the group's weight. The top group has none."""
        return f"{self.directory(group)}/{V1_WEIGHT if self.version == 1 else V2_WEIGHT}"

    def members_file(self, group: str) -> str:
        """The file that lists the group's threads and takes new ones."""
        return f"{self.directory(group)}/{'tasks' if self.version == 1 else 'cgroup.threads'}"

    def group_of(self, pid: int, tid: int, proc: str = procfs.PROC) -> str:
        """The group that a thread is in. Raises ThreadGone."""
        lines = procfs.read_bytes(f"{proc}/{pid}/task/{tid}/cgroup")
        return parse_group(lines, self.version, self.controller)

    def members(self, group: str) -> tuple[int, ...]:
        """The threads that sit in the group itself; none if it vanished."""
        return tuple(map(int, self._listed(group, procfs.read_bytes)))

    def holds_only(self, group: str, tid: int) -> bool:
        """Is this the one thread that sits in the group itself? Asked of each of thousands of threads in a
        group, it must not read them all."""
        return self._listed(group, lambda file: procfs.read_start(file, _TWO_NUMBERS)) == [b"%d" % tid]

    def _listed(self, group: str, read: Callable[[str], bytes]) -> list[bytes]:
        try:
            return read(self.members_file(group)).split()
        except ThreadGone:
            return []
        except OSError as error:
            if error.errno in (errno.ENODEV, errno.EOPNOTSUPP):
                return []
            raise

    def children(self, group: str) -> tuple[str, ...]:
        """The groups directly below, sorted; none if it vanished."""
        try:
            with os.scandir(self.directory(group)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(f"{group.rstrip('/')}/{name}" for name in names)

    def below(self, group: str) -> Iterator[str]:
        """The group itself and all groups below it."""
        yield group
        for child in self.children(group):
            yield from self.below(child)

    def has_children(self, group: str) -> bool:
        """Are there groups below? By the directory's link count where the file system keeps one."""
        try:
            links = os.stat(self.directory(group)).st_nlink
        except FileNotFoundError:
            return False
        return bool(self.children(group)) if links < 2 else links > 2

    def move(self, tid: int, group: str) -> None:
        """Put one thread into a group. Raises OSError."""
        _write(self.members_file(group), str(tid))


def parse_group(lines: bytes, version: int, controller: str = "cpu") -> str:
    """The group in one hierarchy, of the lines of /proc/PID/task/TID/cgroup."""
    for line in lines.decode("utf-8", "surrogateescape").splitlines():
        number, controllers, group = line.split(":", 2)
        if version == 2 and number == "0" and not controllers:
            return group
        if version == 1 and controller in controllers.split(","):
            return group
    raise HierarchyMissing(f"no {controller} hierarchy (v{version}) among this thread's groups")


def _mounts(proc: str, controller: str) -> tuple[Hierarchy, ...]:
    found = []
    for line in procfs.read_bytes(f"{proc}/self/mountinfo").decode("utf-8", "surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        root, mount = (_unescape(word) for word in left.split(" ")[3:5])
        if kind == "cgroup2":
            found.append(Hierarchy(2, mount, root, controller))
        elif kind == "cgroup" and controller in options.split(","):
            found.append(Hierarchy(1, mount, root, controller))
    return tuple(found)


def _unescape(word: str) -> str:
    """mountinfo writes blanks, tabs, newlines and backslashes as octal."""
    for escape, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        word = word.replace(escape, plain)
    return word


def find_hierarchy(proc: str = procfs.PROC, controller: str = "cpu") -> Hierarchy:
    """The mounted hierarchy that has this controller. Raises HierarchyMissing."""
    mounts = _mounts(proc, controller)
    for hierarchy in mounts:
        if hierarchy.version == 1:
            return hierarchy
    for hierarchy in mounts:
        if controller in _words(f"{hierarchy.mount}/cgroup.controllers"):
            return hierarchy
    raise HierarchyMissing(f"no {controller} cgroup hierarchy is mounted")


def hierarchy_at(mount: str, proc: str = procfs.PROC, controller: str = "cpu") -> Hierarchy:
    """The hierarchy that has this controller and is mounted there. Raises HierarchyMissing."""
    for hierarchy in _mounts(proc, controller):
        if hierarchy.mount == mount:
            return hierarchy
    raise HierarchyMissing(f"no {controller} cgroup hierarchy is mounted at {mount}")


def cpuset_of(pid: int, tid: int, proc: str = procfs.PROC) -> frozenset[int]:
    """The CPUs that the thread's cpuset allows; empty where no cpuset applies."""
    try:
        hierarchy = find_hierarchy(proc, "cpuset")
        group = hierarchy.group_of(pid, tid, proc)
    except HierarchyMissing:
        return frozenset()
    name = "cpuset.effective_cpus" if hierarchy.version == 1 else "cpuset.cpus.effective"
    for one in _upwards(hierarchy, group):
        words = _words(f"{hierarchy.directory(one)}/{name}")
        if words:
            return cpulist.parse(words[0])
    return frozenset()


def quota_cores(hierarchy: Hierarchy, group: str) -> float | None:
    """How many cores' time the group may use at most, by the tightest quota above it; None: no quota."""
    limits = [cores for one in _upwards(hierarchy, group) if (cores := _quota_at(hierarchy, one)) is not None]
    return min(limits, default=None)


def quota_files(hierarchy: Hierarchy, group: str) -> Iterator[str]:
    """The files that `quota_cores` goes by."""
    for one in _upwards(hierarchy, group):
        yield from _quota_files_at(hierarchy, one)


def _upwards(hierarchy: Hierarchy, group: str) -> Iterator[str]:
    """The group and all around it."""
    yield group
    while group not in ("/", "", hierarchy.root):
        group = group.rpartition("/")[0] or "/"
        yield group


def _quota_files_at(hierarchy: Hierarchy, group: str) -> tuple[str, ...]:
    directory = hierarchy.directory(group)
    if hierarchy.version == 2:
        return (f"{directory}/cpu.max",)
    return f"{directory}/cpu.cfs_quota_us", f"{directory}/cpu.cfs_period_us"


def _quota_at(hierarchy: Hierarchy, group: str) -> float | None:
    words = [word for file in _quota_files_at(hierarchy, group) for word in _words(file)]
    if len(words) != 2 or words[0] in ("max", "-1"):
        return None
    return int(words[0]) / int(words[1])


def read_weight(path: str) -> int:
    """A weight file's number. Raises ThreadGone if the group vanished, or OSError."""
    return int(procfs.read_bytes(path))


def write_weight(path: str, weight: int, descriptor: int | None = None) -> None:
    """Set a weight, in the file's own unit; a kept descriptor of the file saves five sixths of the cost.
    Raises OSError."""
    if descriptor is None:
        _write(path, str(weight))
    else:
        os.pwrite(descriptor, str(weight).encode(), 0)


def hands_on_cpu(subtree_control: str) -> bool:
    """Does this v2 group give its children the cpu controller?"""
    return b"cpu" in procfs.read_bytes(subtree_control).split()


def hand_on_cpu(subtree_control: str, *, on: bool) -> None:
    """Give a v2 group's children the cpu controller, or take it back. Raises OSError."""
    _write(subtree_control, "+cpu" if on else "-cpu")


def make_group(hierarchy: Hierarchy, group: str) -> None:
    """A new group; threaded on v2, so that single threads may enter it. Raises OSError."""
    directory = hierarchy.directory(group)
    os.mkdir(directory)
    if hierarchy.version == 2:
        try:
            _write(f"{directory}/cgroup.type", "threaded")
        except OSError:
            os.rmdir(directory)
            raise


def remove_group(directory: str) -> bool:
    """Remove an empty group; True if it is gone now, False if somebody is still in it."""
    try:
        os.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
            return False
        raise
    return True


def _words(path: str) -> tuple[str, ...]:
    try:
        return tuple(procfs.read_bytes(path).decode().split())
    except ThreadGone:
        return ()


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
