"""The cpu cgroup hierarchy, v1 or v2: where it is, who is in which group, weights, groups of our own.

On a hybrid host cpu sits on v1 although v2 is mounted as well; then v1 is the one that counts.

Names of groups and mounts are whatever somebody called them: text as Python's functions for file systems take
and give it (a byte that is no UTF-8 is a lone surrogate), never to be shown as it is (printable.py).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from . import cpulist, procfs
from .errors import HierarchyMissing, ThreadGone, unknown_format

V1_WEIGHT, V2_WEIGHT = "cpu.shares", "cpu.weight"

_TWO_NUMBERS = 24
"""Bytes: a thread id has ten digits at most."""

MOST_GROUPS = 4096
DEEPEST = 64
"""How far a tree is followed. Whoever was given a group can make as many below it as he likes, and a thousand
deep, where the kernel walks through all names above for each. Kubernetes and libvirt nest five to eight."""

_WORDS_TO_MOUNT = 5
_ESCAPE = re.compile(rb"\\([0-7]{3})")


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
        try:
            return tuple(map(int, self._listed(group, procfs.read_bytes)))
        except ValueError as error:
            raise unknown_format(f"{self.members_file(group)} lists what is no thread") from error

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
            if error.errno == errno.EOPNOTSUPP:
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

    def below(self, group: str, most: int = MOST_GROUPS) -> Below:
        """The group itself and the groups below it, outer ones first. A group that cannot be read costs what
        is below it, nothing else."""
        found, complete = [group], True
        for one in found:  # grows meanwhile
            try:
                if not self.has_children(one):
                    continue  # a tenth of listing it, and most have none
                if depth(one) < DEEPEST:
                    children = self.children(one)
                    complete &= len(children) <= most - len(found)
                    found += children[: most - len(found)]
                else:
                    complete = False
            except OSError:
                complete = False
        return Below(tuple(found), complete)

    def has_children(self, group: str) -> bool:
        """Are there groups below? By the directory's link count where the file system keeps one."""
        try:
            links = os.stat(self.directory(group)).st_nlink
        except FileNotFoundError:
            return False
        return bool(self.children(group)) if links < 2 else links > 2

    def move(self, tid: int, group: str) -> None:
        """Put one thread into a group. Raises OSError."""
        write(self.members_file(group), str(tid))


class Below(NamedTuple):
    """Groups of a tree; not `complete`: some were too many, too deep, or could not be read."""

    groups: tuple[str, ...]
    complete: bool


class GroupQuota(NamedTuple):
    """A group, and how many cores' time it may use at most."""

    group: str
    cores: float


def parse_group(lines: bytes, version: int, controller: str = "cpu") -> str:
    """The group in one hierarchy, of the lines of /proc/PID/task/TID/cgroup. Raises HierarchyMissing.

    A group's name has anything but a newline (cgroup_mkdir()), and the kernel writes it as it is.
    """
    wanted = controller.encode()
    for line in lines.split(b"\n"):
        number, _, rest = line.partition(b":")
        controllers, _, group = rest.partition(b":")
        if version == 2 and number == b"0" and group and not controllers:
            return os.fsdecode(group)
        if version == 1 and wanted in controllers.split(b","):
            return os.fsdecode(group)
    raise HierarchyMissing(f"no {controller} hierarchy (v{version}) among this thread's groups")


def parse_mounts(mountinfo: bytes, controller: str = "cpu") -> tuple[Hierarchy, ...]:
    """The mounted hierarchies that may have this controller: v1 where it is named, and every v2.

    Words are between single blanks: the kernel writes blanks, tabs, newlines and backslashes in them as octal
    (since 6.9 also #), and nothing else; a word may be empty. "-" ends the optional ones. A line of a file
    system that forgot to escape is nobody's hierarchy.
    """
    return tuple(
        Hierarchy(2 if each.kind == b"cgroup2" else 1, each.mount, each.root, controller)
        for each in _all_mounts(mountinfo)
        if each.kind == b"cgroup2" or controller.encode() in each.options
    )


class _Mount(NamedTuple):
    kind: bytes
    options: list[bytes]
    root: str
    mount: str


def _all_mounts(mountinfo: bytes) -> Iterator[_Mount]:
    for line in mountinfo.split(b"\n"):
        if b" - cgroup" not in line:
            continue  # most are others: not worth taking apart
        left, _, right = line.partition(b" - ")
        words, kind, options = left.split(b" "), right.partition(b" ")[0], right.rpartition(b" ")[2]
        if len(words) < _WORDS_TO_MOUNT or kind not in (b"cgroup", b"cgroup2"):
            continue
        root, mount = (os.fsdecode(_unescape(word)) for word in words[3:5])
        yield _Mount(kind, options.split(b","), root, mount)


def tops(proc: str = procfs.PROC) -> tuple[str, ...]:
    """Where hierarchies are mounted, whatever they control."""
    return tuple(each.mount for each in _all_mounts(procfs.read_bytes(f"{proc}/self/mountinfo")))


def is_shown_from_inside(proc: str = procfs.PROC) -> bool:
    """Is this process in a cgroup namespace of its own, beside mounts of the whole host's hierarchies? Then
    /proc names all groups from its own on ("/../web"), which cannot be found below a mount by their names."""
    return any(
        each.root.startswith("/..") for each in _all_mounts(procfs.read_bytes(f"{proc}/self/mountinfo"))
    )


def _mounts(proc: str, controller: str) -> tuple[Hierarchy, ...]:
    return parse_mounts(procfs.read_bytes(f"{proc}/self/mountinfo"), controller)


def _unescape(word: bytes) -> bytes:
    return _ESCAPE.sub(lambda escape: bytes((int(escape[1], 8) & 0xFF,)), word)


def depth(group: str) -> int:
    """How many steps it is below the top."""
    return group.rstrip("/").count("/")


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


@cache
def hierarchy_at(mount: str, proc: str = procfs.PROC, controller: str = "cpu") -> Hierarchy:
    """The hierarchy that has this controller and is mounted there. Raises HierarchyMissing.

    Looked for once: where it is unmounted later its files are missing, which means the same to who asks.
    """
    for hierarchy in _mounts(proc, controller):
        if hierarchy.mount == mount:
            return hierarchy
    raise HierarchyMissing(f"no {controller} cgroup hierarchy is mounted at {mount}")


class Cpuset(NamedTuple):
    """The CPUs that a thread's cpuset allows and that are online; empty where no cpuset applies."""

    cpus: frozenset[int]
    is_top: bool


def cpuset_of(pid: int, tid: int, proc: str = procfs.PROC) -> Cpuset:
    """The cpuset that applies to a thread: that of its group, or of the nearest one above that has any."""
    try:
        hierarchy = find_hierarchy(proc, "cpuset")
        group = hierarchy.group_of(pid, tid, proc)
    except HierarchyMissing:
        return Cpuset(frozenset(), is_top=True)
    name = "cpuset.effective_cpus" if hierarchy.version == 1 else "cpuset.cpus.effective"
    for one in _upwards(hierarchy, group):
        words = _words(f"{hierarchy.directory(one)}/{name}")
        if words:
            return Cpuset(_cpus(words[0]), is_top=one in ("/", "", hierarchy.root))
    return Cpuset(frozenset(), is_top=True)


def _cpus(word: str) -> frozenset[int]:
    try:
        return cpulist.parse(word)
    except ValueError as error:
        raise unknown_format(f"a cpuset says {word[:80]!r}: {error}") from error


def quota_cores(hierarchy: Hierarchy, group: str) -> float | None:
    """How many cores' time the group may use at most, by the tightest quota above it; None: no quota."""
    tightest = tightest_quota(hierarchy, group)
    return tightest and tightest.cores


def tightest_quota(hierarchy: Hierarchy, group: str) -> GroupQuota | None:
    """The tightest quota of the group and those above it, and whose it is; None: no quota."""
    found = [
        GroupQuota(one, cores)
        for one in _upwards(hierarchy, group)
        if (cores := quota_at(hierarchy, one)) is not None
    ]
    return min(found, key=lambda one: one.cores, default=None)


def quota_files(hierarchy: Hierarchy, group: str) -> Iterator[str]:
    """The files that `quota_cores` goes by."""
    for one in _upwards(hierarchy, group):
        yield from quota_files_at(hierarchy, one)


def _upwards(hierarchy: Hierarchy, group: str) -> Iterator[str]:
    """The group and all around it."""
    yield group
    while group not in ("/", "", hierarchy.root):
        group = group.rpartition("/")[0] or "/"
        yield group


def quota_files_at(hierarchy: Hierarchy, group: str) -> tuple[str, ...]:
    """The files that hold the group's own quota."""
    directory = hierarchy.directory(group)
    if hierarchy.version == 2:
        return (f"{directory}/cpu.max",)
    return f"{directory}/cpu.cfs_quota_us", f"{directory}/cpu.cfs_period_us"


def quota_at(hierarchy: Hierarchy, group: str) -> float | None:
    """How many cores' time the group's own quota allows; None: it has none."""
    words = [word for file in quota_files_at(hierarchy, group) for word in _words(file)]
    numbers = [int(word) for word in words if word.isdecimal() and len(word) < 20]  # not "max", nor "-1"
    return numbers[0] / numbers[1] if len(numbers) == len(words) == 2 and numbers[1] else None


def read_weight(path: str) -> int:
    """A weight file's number. Raises ThreadGone if the group vanished, or OSError."""
    try:
        return int(procfs.read_bytes(path))
    except ValueError as error:
        raise unknown_format(f"{path} holds no number") from error


def inode_of(file: str) -> int:
    """Of the group that has this file: no other group of this boot has or had it. Raises ThreadGone."""
    try:
        return os.stat(os.path.dirname(file)).st_ino
    except FileNotFoundError as error:
        raise ThreadGone(f"{file} vanished") from error


def write_weight(path: str, weight: int) -> None:
    """Set a weight, in the file's own unit. Raises OSError."""
    write(path, str(weight))


def hands_on_cpu(subtree_control: str) -> bool:
    """Does this v2 group give its children the cpu controller?"""
    return b"cpu" in procfs.read_bytes(subtree_control).split()


def hand_on_cpu(subtree_control: str, *, on: bool) -> None:
    """Give a v2 group's children the cpu controller, or take it back. Raises OSError."""
    write(subtree_control, "+cpu" if on else "-cpu")


def make_group(hierarchy: Hierarchy, group: str) -> None:
    """A new group; threaded on v2, so that single threads may enter it. Raises OSError."""
    directory = hierarchy.directory(group)
    os.mkdir(directory)
    if hierarchy.version == 2:
        try:
            write(f"{directory}/cgroup.type", "threaded")
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
    """None of a file that cannot be read: its group vanishes, or has so long a path that it has no files."""
    try:
        return tuple(procfs.read_bytes(path).decode("ascii", "replace").split())
    except (ThreadGone, OSError):
        return ()


def write(path: str, text: str) -> None:
    """One write to a file of a group. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
