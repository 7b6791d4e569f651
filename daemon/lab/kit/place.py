"""A cgroup of a run's tree as the place of a workload."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .driver import CGROUP, Role
from .process import descendants, entered, spawn
from .tree import CLIENT, Tree

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class InGroup:
    """A cgroup of a tree whose groups exist, v1 or v2; clients in another one."""

    listens_at: ClassVar[str] = LOOPBACK
    tree: Tree
    workload: str
    client: str = CLIENT

    @property
    def name(self) -> str:
        """As in the protocol."""
        return CGROUP

    def start(
        self,
        command: Sequence[str],
        log: Path,
        role: Role = Role.WORKLOAD,
        serves: Sequence[int] = (),  # noqa: ARG002  # the interface of places
    ) -> subprocess.Popen[bytes]:
        """In the workload's group, or in that of clients."""
        group = self.client if role is Role.CLIENT else self.workload
        return spawn(entered(self.tree, group, command), log)

    def pids(self, child: subprocess.Popen[bytes]) -> tuple[int, ...]:
        """It and all below it."""
        return tuple(descendants(child.pid))

    def take_out(self, pid: int) -> None:
        """Into the group of clients."""
        self.tree.place_process(pid, self.client)
