"""Whom of a workload the host attends to: all of its threads, or its part where there are too many.

One bound for what grows with the number of threads: seats for counters, knobs in the journal (four a thread),
lines of log and record, and the time of a look (docs/decisions/0039-bounds.md). Whoever is beyond it is not
touched.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from ...parts import fair_parts
from ...roster import Member, RosterEntry
from ..host import MOST_THREADS, ROOM

Numbers = tuple[int, int]
"""(pid, tid): who a thread is until it is identified."""


class Attended(NamedTuple):
    """Threads of a workload that are attended to, and how many others there are."""

    workload: str
    members: Mapping[Numbers, Member]
    left_out: int


def attended(
    roster: Iterable[RosterEntry], here: Container[Numbers], most: int = MOST_THREADS, room: int = ROOM
) -> list[Attended]:
    """Each workload's part. Whoever is `here` already stays before others come; of two workloads that
    name a thread, the first one has it."""
    named: set[Numbers] = set()
    rows: list[tuple[str, dict[Numbers, Member]]] = []
    for entry in roster:
        own = {one.numbers: one for one in entry.members() if one.numbers not in named}
        named.update(own)
        rows.append((entry.name, own))
    parts = fair_parts([min(len(own), most) for _, own in rows], room)
    return [
        Attended(name, _first(own, part, here), len(own) - part)
        for (name, own), part in zip(rows, parts, strict=True)
    ]


def _first(own: Mapping[Numbers, Member], part: int, here: Container[Numbers]) -> Mapping[Numbers, Member]:
    if len(own) == part:
        return own
    chosen = sorted(own, key=lambda numbers: numbers not in here)[:part]
    return {numbers: own[numbers] for numbers in chosen}


def change_of(row: Attended, left_out_before: int, most: int = MOST_THREADS) -> str:
    """What to say when threads of a workload begin to be left out, and when none is any more."""
    if bool(row.left_out) == bool(left_out_before):
        return ""
    if not row.left_out:
        return f"workload {row.workload}: no thread is left alone for want of room any more"
    managed = len(row.members)
    if managed == most:
        why = f"max_threads_per_workload = {most} in [host]"
    else:
        why = f"this host has room for {ROOM} threads of all workloads: manage fewer"
    return (
        f"workload {row.workload}: {row.left_out} of {managed + row.left_out} threads are left alone: {why}"
    )
