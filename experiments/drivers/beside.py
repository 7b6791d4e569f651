"""Batch work that guests that count have, too, in VMs beside those that serve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dasec.lab.kit.driver import Driver, WorkOrder

from .matrixmul import MatrixMul
from .sysbench import CPU, Sysbench


class Batch(Driver, Protocol):
    """Batch work."""

    @property
    def packages(self) -> Mapping[str, str]:
        """Of Debian, by the programs that it needs of them."""

    def checked(self, order: WorkOrder) -> Mapping[str, str]:
        """Its options. Refuses what it cannot do."""


_ALL: tuple[Batch, ...] = (MatrixMul(), Sysbench("sysbench-cpu", "cpu", CPU))

BATCH: Mapping[str, Batch] = {one.name: one for one in _ALL}
