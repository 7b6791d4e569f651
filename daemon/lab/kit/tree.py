"""A series of runs' own part of the cpu cgroup hierarchy: made, filled, emptied by force, removed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...linux import bandwidth, cgroupfs
from .errors import failure

TOP, MACHINE, CLIENT, DAEMON, EMULATOR = "", "machine", "client", "daemon", "emulator"

NEUTRAL, LARGEST = 1024, 262144
"""As cpu.shares: the default, and the largest that cgroup v1 takes."""

TOP_NAME = "dasec-demo"
DAEMON_PATIENCE_S = 5.0
KILL_PATIENCE_S = 5.0
V2_NEUTRAL, V2_LARGEST = 100, 10_000

QUOTA_PERIOD_US = 100_000
"""What libvirt, Docker and Kubernetes set."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group to make, named below the run's own top group. Single threads enter threaded ones."""

    name: str
    threaded: bool = False
    weight: int = NEUTRAL
    quota_cores: float | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """Where the groups hang: the directory of its top group, and its name as /proc has it."""

    version: int
    top: Path
    name: str = f"/{TOP_NAME}"

    @classmethod
    def of(cls, hierarchy: cgroupfs.Hierarchy) -> Tree:
        """The usual place in this hierarchy."""
        return cls(
            hierarchy.version, Path(hierarchy.mount) / TOP_NAME, f"{hierarchy.root.rstrip('/')}/{TOP_NAME}"
        )

    def directory(self, name: str) -> Path:
        """The directory of one group."""
        return self.top / name

    def make(self, groups: Iterable[Group]) -> None:
        """Make all groups. Raises OSError where the host does not let us."""
        for group in groups:
            self._make_directory(group)
            if group.weight != NEUTRAL:
                self._set_weight(group)
            if group.quota_cores is not None:
                self._set_quota(group, int(group.quota_cores * QUOTA_PERIOD_US))

    def _make_directory(self, group: Group) -> None:
        directory = self.directory(group.name)
        directory.mkdir()
        if self.version == 1:
            return
        if group.threaded:
            (directory / "cgroup.type").write_text("threaded")
        (directory.parent / "cgroup.subtree_control").write_text("+cpu")

    def _set_weight(self, group: Group) -> None:
        if self.version == 1:
            (self.directory(group.name) / cgroupfs.V1_WEIGHT).write_text(str(group.weight))
        else:
            weight = min(group.weight * V2_NEUTRAL // NEUTRAL, V2_LARGEST)
            (self.directory(group.name) / cgroupfs.V2_WEIGHT).write_text(str(weight))

    def _set_quota(self, group: Group, quota_us: int) -> None:
        file = "cpu.cfs_quota_us" if self.version == 1 else "cpu.max"
        bandwidth.write_quota(str(self.directory(group.name) / file), f"{quota_us} {QUOTA_PERIOD_US}")

    def entry(self, name: str) -> Path:
        """The file that a process writes its id to, to enter a group with all its threads."""
        return self.directory(name) / "cgroup.procs"

    def place(self, tid: int, name: str) -> None:
        """Put one thread into a group."""
        (self.directory(name) / ("tasks" if self.version == 1 else "cgroup.threads")).write_text(str(tid))

    def place_process(self, pid: int, name: str) -> None:
        """Put a process with all its threads into a group."""
        self.entry(name).write_text(str(pid))

    def weights(self) -> dict[str, int]:
        """Every group's weight, by its name."""
        file = cgroupfs.V1_WEIGHT if self.version == 1 else cgroupfs.V2_WEIGHT
        return {
            str(directory.relative_to(self.top)): int((directory / file).read_text())
            for directory in self._directories()
            if (directory / file).exists()
        }

    def processes(self, name: str = "") -> frozenset[int]:
        """Every process with a thread in this group or below it."""
        found: set[int] = set()
        for directory in self._directories(self.directory(name)):
            with contextlib.suppress(OSError):  # a threaded v2 group does not list processes: its domain does
                found.update(map(int, (directory / "cgroup.procs").read_text().split()))
        return frozenset(found)

    def sweep(self) -> None:
        """End everything in our groups, the daemon orderly and first, then remove them. Idempotent."""
        if not self.top.exists():
            return
        self.end(DAEMON, signal.SIGTERM, DAEMON_PATIENCE_S)
        deadline = time.monotonic() + KILL_PATIENCE_S
        while not self._removed():
            if time.monotonic() > deadline:
                raise failure(f"{self.top}: cannot be emptied: kill what is in it, then rmdir it")
            self.end("", signal.SIGKILL, KILL_PATIENCE_S)

    def _removed(self) -> bool:
        """Remove our groups, innermost first; False if something is left in one."""
        for directory in sorted(self._directories(), key=lambda path: len(path.parts), reverse=True):
            try:
                cgroupfs.remove_group(str(directory))
            except OSError:
                return False
        return not self.top.exists()

    def end(self, name: str, signal_number: signal.Signals, patience_s: float) -> bool:
        """Signal every process of a group until none is left; False if some outlived our patience."""
        deadline = time.monotonic() + patience_s
        signalled: set[int] = set()
        while processes := self.processes(name):
            if time.monotonic() > deadline:
                return False
            for pid in processes - signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
            signalled |= processes
            time.sleep(0.01)
        return True

    def _directories(self, start: Path | None = None) -> Iterator[Path]:
        for path, _, _ in os.walk(start or self.top):
            yield Path(path)
