"""How much a monitor counts of who wakes whom, and the BPF programs that do it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ..model import Level

SLOTS = 4096
EDGES = 16_384
"""Reading walks over room as well as over edges: 0.03 ms for this many (docs/measurements.md)."""

OURS = ("local_timer", "softirq")
"""Interrupts that are told from others, by programs at their begin and end, where our scheduler counts."""

ALL = (*OURS, "irq_handler", "call_function", "call_function_single", "irq_work")

SWITCHING = "switching"
PROGRAMS = {Level.EDGES: ("waking_edges",), Level.FULL: (SWITCHING, "waking_full")}
ON_REQUEST = ("follow", "forget", "renew")


class Extent(NamedTuple):
    """How much a monitor counts, and for how many."""

    level: Level
    slots: int = SLOTS
    edges: int = EDGES

    def sizes(self) -> Mapping[str, int]:
        """Of its maps."""
        past = self.slots if self.level is Level.FULL else 1
        return {"activities": self.slots, "pasts": past, "edges": self.edges}

    def left_out(self) -> Collection[str]:
        """The programs that it does without."""
        others = [name for level in PROGRAMS if level is not self.level for name in PROGRAMS[level]]
        return others if self.level is not Level.NONE else (*others, *brackets(OURS), *ON_REQUEST)


def brackets(interrupts: Collection[str]) -> Collection[str]:
    """Their programs. The end first: attaching sends interrupts itself, and one that only began would never
    end."""
    return [f"{name}_{end}" for name in interrupts for end in ("ends", "begins")]
