"""A cgroup of the keeper's own, outside of one that ends as a whole.

A container's runtime kills everything in the container's groups, and a cgroup that runs out of memory may be
killed whole (memory.oom.group). In a container that shares the host's pids the keeper must sit elsewhere, in
every hierarchy: which of them a runtime goes by is its own affair.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..linux import cgroupfs, procfs

_MUST_HAVE_BEFORE_MEMBERS = ("cpuset.cpus", "cpuset.mems")
"""A new cpuset of v1 is empty, and takes no process until it has both (cpuset_can_attach())."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The group `name` at the top of each hierarchy that is mounted here."""

    name: str
    tops: tuple[Path, ...]

    @classmethod
    def named(cls, name: str, proc: str = procfs.PROC) -> Outside:
        """On this host; no name, no groups."""
        return cls(name, tuple(_tops(proc)) if name else ())

    def enter(self) -> None:
        """Move this process there. Raises OSError: then it may still die with its container."""
        if self.name and not self.tops:
            raise OSError(errno.EROFS, "no hierarchy of cgroups is mounted here that can be written")
        for top in self.tops:
            for last in (False, False, True):
                try:
                    _make_and_enter(top, top / self.name)
                    break
                except OSError as error:  # the keeper before us may just remove it
                    if last or error.errno not in (errno.ENOENT, errno.ENODEV):
                        raise

    def remove(self) -> None:
        """To the top, and the groups away; best effort, since everything that matters is done by then."""
        for top in self.tops:
            with contextlib.suppress(OSError):
                _enter(top)
            with contextlib.suppress(OSError):  # another daemon's keeper may be in it by now
                cgroupfs.remove_group(str(top / self.name))


def _make_and_enter(top: Path, group: Path) -> None:
    group.mkdir(exist_ok=True)
    _fill_cpuset(top, group)
    _enter(group)


def _tops(proc: str) -> Iterator[Path]:
    for mount in cgroupfs.tops(proc):
        if os.access(f"{mount}/cgroup.procs", os.W_OK):
            yield Path(mount)


def _fill_cpuset(top: Path, group: Path) -> None:
    for name in _MUST_HAVE_BEFORE_MEMBERS:
        file = group / name
        if (group / "tasks").exists() and file.exists() and not file.read_text("ascii").strip():
            cgroupfs.write(str(file), (top / name).read_text("ascii").strip())


def _enter(group: Path) -> None:
    """0 is whoever writes (cgroup_procs_write_start())."""
    cgroupfs.write(str(group / "cgroup.procs"), "0")
