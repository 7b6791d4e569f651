"""The study as jobs that know nothing of each other, so that they may be anywhere: here one after the other,
or on the workers of a Dask cluster, which must have this clone and its environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .capacity import busy_parts, held, kept
from .curves import OURS, PLAIN, Curve, Floats, Waits
from .demand import VmSource
from .moves import Start, live
from .tables import Held, HeldMoving, Life

if TYPE_CHECKING:
    from distributed import Client

LIMITS = (1.5, 2.0, 3.0)
"""Of p99, over that of a VM alone."""

ENOUGH = 0.9
"""Below that part of kept hours no more VMs need be tried: capacity.KEPT is above it."""

MOVED_HOSTS, MOVED_DAYS = 100, 3
MOVED_VMS = {"as measured": 3, "a third of it": 14}
"""VMs a host, by demand: crowded on EEVDF."""

FOLLOWING = (PLAIN, OURS)
"""Whose hosts follow hints."""

Job = TypeVar("Job")
Done = TypeVar("Done")


class Spread:
    """Where jobs are done: here."""

    def each(self, work: Callable[[Job], Done], jobs: Sequence[Job]) -> Iterable[Done]:
        """What becomes of each, in order."""
        return map(work, jobs)


class OnDask(Spread):
    """On a cluster's workers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def each(self, work: Callable[[Job], Done], jobs: Sequence[Job]) -> Iterable[Done]:
        """What becomes of each, in order."""
        found: list[Done] = self._client.gather(self._client.map(work, jobs, pure=False))
        return found


@contextmanager
def spread_at(scheduler: str | None) -> Iterator[Spread]:
    """Here, or on the cluster of that scheduler (`tcp://HOST:8786`)."""
    if scheduler is None:
        yield Spread()
        return
    from distributed import Client

    with Client(scheduler) as client:
        yield OnDask(client)


class HeldJob(NamedTuple):
    """One day of a large fleet."""

    name: str
    demand: VmSource
    seed: int
    hosts: int
    curves: Mapping[str, Curve]


class LifeJob(NamedTuple):
    """Some days of a small one. `arm`: of its hosts, which follow hints; None: any, without hints."""

    name: str
    demand: VmSource
    vms_each: int
    start: Start
    arm: str | None
    seed: int
    waits: Mapping[str, Waits]


class HeldMovingJob(NamedTuple):
    """Some days of small ones, with ever more VMs a host. `arm` as above."""

    name: str
    demand: VmSource
    arm: str | None
    seed: int
    curves: Mapping[str, Curve]
    waits: Mapping[str, Waits]


def held_jobs(
    demands: Mapping[str, VmSource], curves: Mapping[str, Curve], hosts: int, seeds: int
) -> list[HeldJob]:
    """Every demand and seed."""
    return [
        HeldJob(name, demand, seed, hosts, curves)
        for name, demand in demands.items()
        for seed in range(seeds)
    ]


def holdings(job: HeldJob) -> list[Held]:
    """Every limit and arm."""
    found = _held(job.curves, job.curves, lambda each: busy_parts(job.demand, job.hosts, each, job.seed))
    return [Held(job.name, limit, arm, job.seed, vms_each) for (limit, arm), vms_each in found.items()]


def held_moving_jobs(
    demands: Mapping[str, VmSource], curves: Mapping[str, Curve], waits: Mapping[str, Waits], seeds: int
) -> list[HeldMovingJob]:
    """Both sizes of VMs, without hints and with those of each kind of hosts, and every seed."""
    return [
        HeldMovingJob(name, demands[name], arm, seed, curves, waits)
        for name in MOVED_VMS
        for arm in (None, *FOLLOWING)
        for seed in range(seeds)
    ]


def holdings_moving(job: HeldMovingJob) -> list[HeldMoving]:
    """Every limit and arm, placed by number."""

    def busy(vms_each: int) -> Floats:
        start, told = Start.EVEN_NUMBERS, _told(job.arm, job.waits)
        return live(job.demand, MOVED_HOSTS, vms_each, start, MOVED_DAYS, job.seed, told).busy

    found = _held(job.curves, (job.arm,) if job.arm else FOLLOWING, busy)
    return [
        HeldMoving(job.name, limit, arm, job.seed, job.arm is not None, vms_each)
        for (limit, arm), vms_each in found.items()
    ]


def _told(arm: str | None, waits: Mapping[str, Waits]) -> Waits | None:
    return None if arm is None else waits[arm]


def _held(
    curves: Mapping[str, Curve], arms: Iterable[str], busy_with: Callable[[int], Floats]
) -> dict[tuple[float, str], float]:
    """VMs a host by limit and arm; `busy_with`: how busy hosts are with so many on each."""
    alone_ms, asked = curves[PLAIN].alone_ms, tuple(arms)
    most = max(curves[arm].most_busy(LIMITS[-1] * alone_ms) for arm in asked)
    busy_at = {1: busy_with(1)}
    while kept(busy_at[len(busy_at)], most) > ENOUGH:
        busy_at[len(busy_at) + 1] = busy_with(len(busy_at) + 1)
    return {(limit, arm): held(busy_at, curves[arm], limit * alone_ms) for limit in LIMITS for arm in asked}


def life_jobs(demands: Mapping[str, VmSource], waits: Mapping[str, Waits], seeds: int) -> list[LifeJob]:
    """Every size of VMs, placement, without hints and with those of each kind of hosts, and every seed."""
    return [
        LifeJob(name, demands[name], each, start, arm, seed, waits)
        for name, each in MOVED_VMS.items()
        for start in Start
        for arm in (None, *FOLLOWING)
        for seed in range(seeds)
    ]


def lived(job: LifeJob) -> Life:
    """What it went through."""
    told = _told(job.arm, job.waits)
    found = live(job.demand, MOVED_HOSTS, job.vms_each, job.start, MOVED_DAYS, job.seed, told)
    return Life(f"{job.vms_each} {job.name}", job.start.value, job.arm, job.seed, found)
