"""The study as jobs that know nothing of each other, so that they may be anywhere: here one after the other,
or on the workers of a Dask cluster, which must have this clone and its environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .capacity import busy_parts, held, kept
from .curves import PLAIN, Curve, Floats
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
    """Some days of a small one."""

    name: str
    demand: VmSource
    vms_each: int
    start: Start
    hints: bool
    seed: int


class HeldMovingJob(NamedTuple):
    """Some days of small ones, with ever more VMs a host."""

    name: str
    demand: VmSource
    hints: bool
    seed: int
    curves: Mapping[str, Curve]


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
    found = _held(job.curves, lambda vms_each: busy_parts(job.demand, job.hosts, vms_each, job.seed))
    return [Held(job.name, limit, arm, job.seed, vms_each) for (limit, arm), vms_each in found.items()]


def held_moving_jobs(
    demands: Mapping[str, VmSource], curves: Mapping[str, Curve], seeds: int
) -> list[HeldMovingJob]:
    """Both sizes of VMs, with hints and without, and every seed."""
    return [
        HeldMovingJob(name, demands[name], hints, seed, curves)
        for name in MOVED_VMS
        for hints in (False, True)
        for seed in range(seeds)
    ]


def holdings_moving(job: HeldMovingJob) -> list[HeldMoving]:
    """Every limit and arm, placed by number."""

    def busy(vms_each: int) -> Floats:
        start = Start.EVEN_NUMBERS
        return live(job.demand, MOVED_HOSTS, vms_each, start, MOVED_DAYS, job.seed, hints=job.hints).busy

    found = _held(job.curves, busy)
    return [
        HeldMoving(job.name, limit, arm, job.seed, job.hints, vms_each)
        for (limit, arm), vms_each in found.items()
    ]


def _held(curves: Mapping[str, Curve], busy_with: Callable[[int], Floats]) -> dict[tuple[float, str], float]:
    """VMs a host by limit and arm; `busy_with`: how busy hosts are with so many on each."""
    alone_ms = curves[PLAIN].alone_ms
    most = max(curve.most_busy(LIMITS[-1] * alone_ms) for curve in curves.values())
    busy_at = {1: busy_with(1)}
    while kept(busy_at[len(busy_at)], most) > ENOUGH:
        busy_at[len(busy_at) + 1] = busy_with(len(busy_at) + 1)
    return {
        (limit, arm): held(busy_at, curve, limit * alone_ms)
        for limit in LIMITS
        for arm, curve in curves.items()
    }


def life_jobs(demands: Mapping[str, VmSource], seeds: int) -> list[LifeJob]:
    """Every size of VMs, placement, with hints and without, and seed."""
    return [
        LifeJob(name, demands[name], each, start, hints, seed)
        for name, each in MOVED_VMS.items()
        for start in Start
        for hints in (False, True)
        for seed in range(seeds)
    ]


def lived(job: LifeJob) -> Life:
    """What it went through."""
    found = live(job.demand, MOVED_HOSTS, job.vms_each, job.start, MOVED_DAYS, job.seed, hints=job.hints)
    return Life(f"{job.vms_each} {job.name}", job.start.value, job.hints, job.seed, found)
