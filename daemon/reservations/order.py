"""From one state to the next by single writes, none of which leaves anybody without a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .grants import Reservations

POOL = ""
"""The name of those who hold nothing: all that is in no workload of ours, if the pool is its home."""


class CpusetWrite(NamedTuple):
    """This cpuset for that workload."""

    name: str
    cpus: frozenset[int]


def cpusets(state: Reservations) -> Mapping[str, frozenset[int]]:
    """The cpuset of each workload, and of everybody else."""
    others = {} if state.apart else {POOL: state.shared}
    return others | {name: state.cpus_of(name) for name in state.grants}


def writes(before: Reservations, after: Reservations) -> tuple[CpusetWrite, ...]:
    """What to write, in this order: first everybody gives up what is not theirs any more, then who keeps
    nothing moves, then everybody gets what is new. So a workload gets a CPU of its own after all others have
    left it."""
    old, new = cpusets(before), cpusets(after)
    return (*_give_up(old, new), *_receive(old, new))


def _give_up(old: Mapping[str, frozenset[int]], new: Mapping[str, frozenset[int]]) -> Iterator[CpusetWrite]:
    for name in sorted(old.keys() & new.keys()):
        kept = old[name] & new[name]
        if kept and kept != old[name]:
            yield CpusetWrite(name, kept)


def _receive(old: Mapping[str, frozenset[int]], new: Mapping[str, frozenset[int]]) -> Iterator[CpusetWrite]:
    moved = [name for name in sorted(new) if name in old and not old[name] & new[name]]
    others = [name for name in sorted(new) if name not in moved]
    for name in (*moved, *others):
        reached = old.get(name, frozenset()) & new[name]
        if reached != new[name]:
            yield CpusetWrite(name, new[name])
