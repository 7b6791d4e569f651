"""Which workload holds which cores, and what it means to move one (PARTIES' only resource here).

Everybody holds at least one core. As long as there are enough, each core has one holder; with more workloads
than cores, each workload holds one core and shares it. Three moves, each the smallest there is:

- to *take* a core from a workload that has more than one;
- to *go* to another core, for a workload that shares its only one;
- to *undo* the last move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..model import Core

Partition = Mapping[str, tuple[Core, ...]]


class Transfer(NamedTuple):
    """One core changes hands: `gainer` gets `core`; `giver` loses it, or the gainer leaves `left` for it."""

    gainer: str
    core: Core
    giver: str | None = None
    left: Core | None = None


def deal(workloads: Sequence[str], cores: Sequence[Core]) -> dict[str, tuple[Core, ...]]:
    """Equal parts, neighbouring cores together; in turn where there are more workloads than cores."""
    count = len(workloads)
    if count > len(cores):
        return {name: (cores[turn % len(cores)],) for turn, name in enumerate(workloads)}
    cuts = [turn * len(cores) // count for turn in range(count + 1)] if count else []
    return {name: tuple(cores[cuts[turn] : cuts[turn + 1]]) for turn, name in enumerate(workloads)}


def holders(partition: Partition, core: Core) -> list[str]:
    """Who holds that core."""
    return [name for name, cores in partition.items() if core in cores]


def moved(partition: Partition, transfer: Transfer) -> dict[str, tuple[Core, ...]]:
    """The partition after a transfer."""
    after = dict(partition)
    kept = tuple(core for core in after[transfer.gainer] if core != transfer.left)
    after[transfer.gainer] = tuple(sorted((*kept, transfer.core)))
    if transfer.giver is not None:
        after[transfer.giver] = tuple(core for core in after[transfer.giver] if core != transfer.core)
    return after


def undone(partition: Partition, transfer: Transfer) -> dict[str, tuple[Core, ...]]:
    """The partition as it was before a transfer."""
    after = dict(partition)
    kept = tuple(core for core in after[transfer.gainer] if core != transfer.core)
    back = kept if transfer.left is None else (*kept, transfer.left)
    after[transfer.gainer] = tuple(sorted(back))
    if transfer.giver is not None:
        after[transfer.giver] = tuple(sorted((*after[transfer.giver], transfer.core)))
    return after
