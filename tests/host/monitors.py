"""Monitors of wake-ups for tests: traced, as under any scheduler, or in the maps of our own."""

from __future__ import annotations

import os

import pytest

from dasec.bpf.extent import Extent
from dasec.bpf.scx import Scheduler, options, why_not
from dasec.bpf.wake_edges import BpfEdges
from dasec.model import Level

TRACED, SCHEDULED = "traced", "scheduled"


class Monitors:
    """Opens them, one after the other; each ends the one before."""

    def __init__(self, kind: str) -> None:
        if kind == SCHEDULED and (os.environ.get("DASEC_GUEST") != "1" or why_not() is not None):
            pytest.skip("needs sched_ext, in a guest of its own; tests/vm runs this in one")
        self._is_scheduled = kind == SCHEDULED
        self._scheduler: Scheduler | None = None
        self._monitor: BpfEdges | None = None

    def open(self, level: Level, slots: int, edges: int) -> BpfEdges:
        """One with so much room, counting."""
        self.close()
        extent = Extent(level, slots, edges)
        if self._is_scheduled:
            self._scheduler = Scheduler(options(2), extent=extent)
            self._scheduler.begin()
        self._monitor = BpfEdges(extent, self._scheduler)
        return self._monitor

    def close(self) -> None:
        """The last one, and its scheduler."""
        if self._monitor is not None:
            self._monitor.close()
        if self._scheduler is not None:
            self._scheduler.close()
        self._monitor = self._scheduler = None
