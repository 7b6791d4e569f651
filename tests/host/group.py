"""A cgroup v1 group of a test's own, heavy enough that the rest of the machine does not matter."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from dasec.knobs.knob import NativeKnob
from dasec.knobs.weights import WEIGHT_V1, WEIGHT_V2
from dasec.linux import cgroupfs
from guests.waiting import wait_for

HEAVIEST = 262_144


class TestGroup:
    """Below it a test's processes compete with one another and hardly with anybody else."""

    __test__ = False

    def __init__(self, name: str) -> None:
        self.hierarchy = cgroupfs.find_hierarchy()
        self.group = f"{self.hierarchy.root.rstrip('/')}/dasec-test-{name}-{os.getpid()}"
        self.directory = Path(self.hierarchy.directory(self.group))
        self._v2 = self.hierarchy.version == 2
        self._handed_on = self._v2 and self._hand_on(self.directory.parent)
        self.directory.mkdir()
        cgroupfs.write_weight(self.hierarchy.weight_file(self.group), 10_000 if self._v2 else HEAVIEST)

    def enter(self, pid: int, below: str = "") -> None:
        """Move a whole process in, perhaps into a group below that is made first."""
        place = self.directory / below
        if below and self._v2:
            self._hand_on(self.directory)
        place.mkdir(exist_ok=True)
        (place / "cgroup.procs").write_text(str(pid))

    def weight(self, below: str) -> int:
        """The weight of a group below, in the model's unit."""
        return int(self._kind.model(cgroupfs.read_weight(self._weight_file(below))))  # type: ignore[arg-type]

    def set_weight(self, below: str, weight: int) -> None:
        """Somebody else weighs a group below."""
        cgroupfs.write_weight(self._weight_file(below), int(self._kind.native(weight)))  # type: ignore[arg-type]

    def limit_to_half_a_core(self, below: str) -> None:
        """A quota."""
        self.limit(below, 50)

    def limit(self, below: str, percent: int) -> None:
        """A quota, in percent of a core."""
        if self._v2:
            (self.directory / below / "cpu.max").write_text(f"{percent * 1000} 100000")
        else:
            (self.directory / below / "cpu.cfs_quota_us").write_text(str(percent * 1000))

    def below(self) -> list[str]:
        """Names of the groups in it."""
        return sorted(path.name for path in self.directory.iterdir() if path.is_dir())

    def handed_on(self) -> bool:
        """v2: may groups below have weights? On v1 they always may."""
        return not self._v2 or cgroupfs.hands_on_cpu(f"{self.directory}/cgroup.subtree_control")

    def close(self) -> None:
        """Remove it and what is below; its processes have ended or are about to."""
        for path in [*sorted(self.directory.glob("**/"), reverse=True), self.directory]:
            _remove(path)
        if self._handed_on:
            cgroupfs.hand_on_cpu(f"{self.directory.parent}/cgroup.subtree_control", on=False)

    @property
    def _kind(self) -> NativeKnob:
        return WEIGHT_V2 if self._v2 else WEIGHT_V1

    def _weight_file(self, below: str) -> str:
        return self.hierarchy.weight_file(f"{self.group}/{below}")

    @staticmethod
    def _hand_on(directory: Path) -> bool:
        control = f"{directory}/cgroup.subtree_control"
        if cgroupfs.hands_on_cpu(control):
            return False
        cgroupfs.hand_on_cpu(control, on=True)
        return True


def _remove(path: Path) -> None:
    def removed() -> bool:
        with contextlib.suppress(OSError):
            path.rmdir()
        return not path.exists()

    wait_for(removed, every_s=0.01)
