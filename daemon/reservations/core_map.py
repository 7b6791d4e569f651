"""Who holds which CPUs, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .grants import WHOLE, Reservations

POOL = "pool"


class Run(NamedTuple):
    """CPUs with the same holders, and who these are; where a CPU is given in parts, with the part of each."""

    cpus: tuple[int, ...]
    holders: str


def core_map(state: Reservations, cpus: Sequence[int]) -> Iterator[Run]:
    """These CPUs, those with the same holders together."""
    together: dict[str, list[int]] = {}
    for cpu in cpus:
        together.setdefault(_holders(state, cpu), []).append(cpu)
    for who, mine in together.items():
        yield Run(tuple(mine), who)


def _holders(state: Reservations, cpu: int) -> str:
    for name, grant in state.grants.items():
        if cpu in grant.exclusive:
            return name
    shares = ((name, *share) for name, grant in state.grants.items() for share in grant.parts)
    parts = [f"{name} {part / WHOLE:g}" for name, at, part in shares if at == cpu]
    return " + ".join(parts) or POOL
