"""At most one move: from the host that waits most, of a workload that keeps others waiting, to where the
simulation likes it best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..reservations import Refused
from .allocate import Fit, fit
from .fleet import FleetHost, Lately, Resident
from .waits import wait_with

SOURCE_OVER = 0.10
"""A host that waits less is left alone; the alert DasecHostOvercommitted has the same (decision 0053)."""

TARGET_UNDER = 0.03
"""A host that waits more now takes nothing (decision 0053)."""

TARGET_AT_MOST = 0.05
"""What a target may wait afterwards (decision 0053)."""

WORKLOAD_WORSE_AT_MOST = 0.02
"""By how much of its time the workload may wait more than now (decision 0053)."""

WORTH = 0.2
"""A move must take away that part of what the source waits (decision 0053)."""


@dataclass(frozen=True, slots=True)
class AdvisedMove:
    """A workload, from where to where, and the waits (0 to 1) of both hosts and of itself, now and simulated.
    `spared_cores`: how many vCPUs fewer would wait, both hosts together."""

    workload: str
    source: str
    target: str
    source_wait: tuple[float, float]
    target_wait: tuple[float, float]
    workload_wait: tuple[float, float]
    spared_cores: float
    fit: Fit


def hint(hosts: Sequence[FleetHost], lately: Lately) -> AdvisedMove | None:
    """The move to make now, if any. Names of hosts are unique; the same fleet gives the same move, in
    whatever order it is told."""
    settled = [host for host in hosts if host.name not in lately.unsettled]
    targets = [host for host in settled if host.wait < TARGET_UNDER]
    sources = [host for host in settled if host.wait > SOURCE_OVER]
    for source in sorted(sources, key=lambda host: (-host.wait, host.name)):
        best = _first(
            ((Fit(), move.spared_cores), move)
            for resident in source.residents
            if is_culprit(resident)
            if (move := _best_target(source, resident, targets, lately))
        )
        if best is not None:
            return best
    return None


def is_culprit(resident: Resident) -> bool:
    """May it go, and do others wait for it longer than it waits itself?"""
    return resident.may_move and resident.blame_cores > resident.waiting_cores


def _best_target(
    source: FleetHost, resident: Resident, targets: Sequence[FleetHost], lately: Lately
) -> AdvisedMove | None:
    left = max(0.0, source.runnable_cores - resident.runnable_cores)
    here_wait = wait_with(source, source.vcpus - resident.vcpus, left)
    if not _is_worth(source.wait, here_wait):
        return None  # wherever it went: no target need be looked at
    return _first(
        ((move.fit, move.spared_cores), move)
        for target in targets
        if (resident.name, target.name) not in lately.within_a_day
        if (move := _simulated(source, here_wait, resident, target)) and is_liked(move)
    )


def is_liked(move: AdvisedMove) -> bool:
    """Is it worth it, and is nobody worse off beyond the margins?"""
    own_before, own_after = move.workload_wait
    return (
        _is_worth(*move.source_wait)
        and move.target_wait[1] <= TARGET_AT_MOST
        and own_after <= own_before + WORKLOAD_WORSE_AT_MOST
        and move.spared_cores > 0
    )


def _is_worth(before: float, after: float) -> bool:
    return after <= before * (1 - WORTH)


def _simulated(
    source: FleetHost, here_wait: float, resident: Resident, target: FleetHost
) -> AdvisedMove | None:
    """The move's effect; None if the target cannot hold the workload."""
    moved = resident.runnable_cores
    there_wait = wait_with(target, target.vcpus + resident.vcpus, target.runnable_cores + moved)
    if there_wait > TARGET_AT_MOST:
        return None  # most end here, before the allocation, which costs more
    found = fit(target, resident)
    if isinstance(found, Refused):
        return None
    left = max(0.0, source.runnable_cores - moved)
    waited = source.wait * source.runnable_cores + target.wait * target.runnable_cores
    would_wait = here_wait * left + there_wait * (target.runnable_cores + moved)
    return AdvisedMove(
        workload=resident.name,
        source=source.name,
        target=target.name,
        source_wait=(source.wait, here_wait),
        target_wait=(target.wait, there_wait),
        workload_wait=(resident.wait, there_wait),
        spared_cores=waited - would_wait,
        fit=found,
    )


def _first(scored: Iterable[tuple[tuple[Fit, float], AdvisedMove]]) -> AdvisedMove | None:
    """The one with the greatest score; of equals the first by name."""
    by_name = sorted(scored, key=lambda each: (each[1].workload, each[1].target))
    return max(by_name, key=lambda each: each[0])[1] if by_name else None
