"""Groups with a cpuset of their own, in whichever hierarchy has that controller here."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from dasec.linux import cgroupfs

EVERY_CPU = "0-1"


class Cpuset:
    """A group below the top one whose CPUs can be changed; it starts with all of them."""

    def __init__(self, name: str) -> None:
        self._hierarchy = cgroupfs.find_hierarchy(controller="cpuset")
        self._group = f"/dasec-test-{os.getpid()}-{name}"
        self.place = Path(self._hierarchy.directory(self._group))
        if self.version == 2:
            (Path(self._hierarchy.mount) / "cgroup.subtree_control").write_text("+cpuset")
        self.place.mkdir()
        if self.version == 1:  # where it allows nothing before it is told to
            (self.place / "cpuset.mems").write_text("0")
            self.allow(EVERY_CPU)

    @property
    def version(self) -> int:
        """Of the hierarchy."""
        return self._hierarchy.version

    def allow(self, cpus: str) -> None:
        """Threads in here may use these CPUs now."""
        (self.place / "cpuset.cpus").write_text(cpus)

    def take_in(self, pid: int) -> None:
        """A whole process."""
        (self.place / "cgroup.procs").write_text(str(pid))

    def become(self, partition: str) -> None:
        """`root` or `isolated`: its CPUs are its own now, and nobody else's; `member`: as at first."""
        file = self.place / "cpuset.cpus.partition"
        file.write_text(partition)
        assert file.read_text().strip() == partition

    def close(self) -> None:
        """Whoever is in it goes to the top group."""
        top = Path(self._hierarchy.mount) / "cgroup.procs"
        for pid in (self.place / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                top.write_text(pid)
        while not cgroupfs.remove_group(str(self.place)):
            time.sleep(0.01)
