"""Algorithm 1 of WYSIWYG, with rKube's whole CPUs as one more class, and what the paper leaves open: release,
a pool that is never empty, which CPU (decision 0045)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from .grants import WHOLE, Ask, CpuClass, Grant, Principle, Reservations
from .take import take


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was given, for that reason."""

    why: str


def allocate(
    before: Reservations,
    ask: Ask,
    principle: Principle = Principle.HARD,
    within: Collection[int] | None = None,
) -> Reservations | Refused:
    """The reservations with that one more, or why not; nobody else's CPUs change, but the pool does.
    `within`: the only CPUs that it may use (None: it may use all)."""
    if ask.name in before.grants:
        return Refused(f"{ask.name}: has a reservation already: release it first")
    if ask.millicores <= 0:
        return Refused(f"{ask.name}: {ask.millicores} millicores: ask for more than none")
    if ask.reserved_millicores > before.free_millicores:
        free = cpus(before.free_millicores)
        return Refused(f"{ask.name}: wants {cpus(ask.reserved_millicores)}, and {free} are not given yet")
    found = _find(before, ask, principle, frozenset(before.places if within is None else within))
    if isinstance(found, Refused):
        return found
    after = replace(before, grants={**before.grants, ask.name: found})
    if after.needs_pool and not after.pool:
        return Refused(f"{ask.name}: would take the last CPU of the pool, in which all others are")
    return after


def release(before: Reservations, name: str) -> Reservations:
    """The reservations without that one. Its own CPUs, and those of which it held the last part, come back to
    the pool. KeyError if there is none."""
    kept = dict(before.grants)
    del kept[name]
    return replace(before, grants=kept)


def cpus(millicores: int) -> str:
    """So many CPUs in words: "2.5 CPUs"."""
    return f"{millicores / WHOLE:g} CPU{'' if millicores == WHOLE else 's'}"


def _find(before: Reservations, ask: Ask, principle: Principle, within: frozenset[int]) -> Grant | Refused:
    """The CPUs for an ask for which there is room."""
    if not ask.is_apart:
        return Grant(ask)
    pool = before.pool & within
    spare = min(len(pool), len(before.pool) - before.needs_pool)
    whole, fraction = divmod(ask.reserved_millicores, WHOLE)
    own = take(pool, max(0, min(whole, spare)), before.places)
    short = whole - len(own)
    if ask.cpu_class is CpuClass.WHOLE:
        why = f"{ask.name}: wants {whole} whole CPUs, and the pool can give {len(own)}"
        return Refused(why) if short else Grant(ask, own)
    most = short + bool(fraction)
    left = short * WHOLE + fraction
    if not left:
        return Grant(ask, own)
    if short and not fraction and principle is Principle.HARD:
        return Refused(f"{ask.name}: wants {whole} CPUs of its own, and the pool can give {len(own)}")
    used = {cpu: part for cpu, part in before.used_parts.items() if cpu in within}
    parts = _choose(used, None if principle is Principle.BEST_EFFORT else most, left)
    if parts is None and not short and spare > len(own):
        fresh = take(pool - own, 1, before.places)
        parts = tuple((cpu, left) for cpu in fresh)
    if parts is None:
        return Refused(f"{ask.name}: {cpus(left)} of it fit on no {most} of the CPUs that are given in parts")
    return Grant(ask, own, parts)


def _choose(used: Mapping[int, int], most: int | None, millicores: int) -> tuple[tuple[int, int], ...] | None:
    """Parts of at most so many fractional CPUs, the emptiest first (WYSIWYG, section IV-E); None if they have
    not so much."""
    given: list[tuple[int, int]] = []
    for cpu in sorted(used, key=lambda cpu: (used[cpu], cpu))[:most]:
        part = min(WHOLE - used[cpu], millicores)
        if part:
            given.append((cpu, part))
            millicores -= part
    return None if millicores else tuple(given)
