"""p99 and waiting of one host over how busy it is, as the deterministic machine measured them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from ...results.kept_cells import seen

STUDIES = Path(__file__).resolve().parent.parent
HOSTS = "fleet/results/hosts"
"""16 CPUs with 1 to 9 VMs of `bursts`, every arm, three seeds each (hosts.toml)."""

WAITS = "fleet/results/waits"
"""The same hosts with EEVDF and our own scheduler, and for how long their threads waited (waits.toml)."""

CHECKS = (
    *("testbed/results/sweep", "testbed/results/causes", "testbed/results/headline"),
    *("sched_ext/results/sixteen", "sched_ext/results/sixteen-busy"),
)
"""Runs of other studies with the same VMs on 16 CPUs, no points of the curves."""

VMS = "bursts-130-"
"""The kind of VMs of which all curves are: their threads are free to move."""

CPUS = 16

VM_CORES = 1.53
"""What each VM of those runs used."""

PLAIN, CRITICAL, ORACLE, OURS = "none", "critical", "oracle", "scx"
ARMS_MEASURED = (PLAIN, CRITICAL, ORACLE, OURS)

Floats = NDArray[np.float64]


class Point(NamedTuple):
    """CPUs used of all, and mean p99 of the VMs."""

    busy: float
    p99_ms: float


@dataclass(frozen=True)
class Curve:
    """p99 in ms by part of the CPUs used. Constant below the least busy run; above the busiest one nothing is
    known: infinite, so that nothing is claimed there."""

    busiest: float
    _inside: Callable[[Floats], Floats]
    _least: float

    @classmethod
    def through(cls, points: Sequence[Point]) -> Curve:
        """Monotone between the points, of the logarithm: p99 grows manifold."""
        busy, p99_ms = zip(*sorted(points), strict=True)
        return cls(busy[-1], PchipInterpolator(busy, np.log(p99_ms)), busy[0])

    def p99_ms(self, busy: Floats) -> Floats:
        """Of as many hosts as are asked for."""
        inside = np.clip(busy, self._least, self.busiest)
        return np.where(busy > self.busiest, np.inf, np.exp(self._inside(inside)))

    @property
    def alone_ms(self) -> float:
        """Of a host that is nearly idle."""
        return float(self.p99_ms(np.zeros(1))[0])

    def most_busy(self, limit_ms: float) -> float:
        """How busy a host may be for a p99 within the limit."""
        grid = np.linspace(0, self.busiest, 10_001)
        return float(grid[self.p99_ms(grid) <= limit_ms].max(initial=0.0))


@dataclass(frozen=True)
class Waits:
    """Of a host's threads that want a CPU the part that waits (0 to 1), by part of the CPUs used. Constant
    beyond the least busy and the busiest run."""

    busiest: float
    _inside: Callable[[float], float]
    _least: float

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Waits:
        """Monotone between the points: (busy, wait)."""
        busy, wait = zip(*sorted(points), strict=True)
        return cls(busy[-1], PchipInterpolator(busy, wait), busy[0])

    def part(self, busy: float) -> float:
        """Of one host."""
        return float(self._inside(min(max(busy, self._least), self.busiest)))


class Host(NamedTuple):
    """One measured host: what `cell` ran there (so many VMs), whose arrivals, under which arm."""

    cell: str
    repetition: int
    arm: str
    point: Point


def measured_hosts() -> tuple[Host, ...]:
    """All that was measured for the curves; the plain host is there twice."""
    return tuple(
        Host(block["cell"], block["repetition"], run["arm"].removesuffix("-again"), _point(run))
        for block in _blocks(HOSTS)
        for run in block["runs"]
    )


def curve_of(arm: str, known: Sequence[Host]) -> Curve:
    """Through the mean of each cell's runs."""
    of = [host for host in known if host.arm == arm]
    return Curve.through(
        [_mean([host.point for host in of if host.cell == cell]) for cell in {host.cell for host in of}]
    )


def measured() -> Mapping[str, Curve]:
    """All arms' curves."""
    known = measured_hosts()
    return {arm: curve_of(arm, known) for arm in ARMS_MEASURED}


def waits_seen() -> Mapping[str, Sequence[tuple[float, float]]]:
    """(busy, wait) of EEVDF, the mean of both of its runs, and of our own scheduler."""
    points: dict[str, list[tuple[float, float]]] = {PLAIN: [], OURS: []}
    for block in _blocks(WAITS):
        for arm, of in points.items():
            runs = [run for run in block["runs"] if run["arm"].removesuffix("-again") == arm]
            busy = statistics.fmean(_point(run).busy for run in runs)
            waiting = statistics.fmean(sum(vm["waiting"] for vm in run["tenants"]) for run in runs)
            of.append((busy, waiting / (waiting + busy * CPUS)))
    return {arm: sorted(of) for arm, of in points.items()}


def measured_waits() -> Mapping[str, Waits]:
    """As curves."""
    return {arm: Waits.through(of) for arm, of in waits_seen().items()}


class Foretold(NamedTuple):
    """Runs that the curve does not know (a cell of ours, or of which study): how busy they were, p99 by the
    curve and as measured."""

    what: str
    arm: str
    busy: float
    curve_ms: float
    was_ms: float

    @property
    def off(self) -> float:
        """Of what was measured."""
        return self.curve_ms / self.was_ms - 1


def other_seeds() -> Iterator[Foretold]:
    """Each cell with each seed's arrivals by the curve of the other seeds."""
    known = measured_hosts()
    for arm in ARMS_MEASURED:
        for left_out in sorted({host.repetition for host in known}):
            others = curve_of(arm, [host for host in known if host.repetition != left_out])
            there = [host for host in known if (host.arm, host.repetition) == (arm, left_out)]
            for cell in sorted({host.cell for host in there}):
                yield _foretold(cell, arm, others, [host.point for host in there if host.cell == cell])


def other_studies() -> Iterator[Foretold]:
    """Each cell, the mean of its runs."""
    curves = measured()
    for name in CHECKS:
        for cell in _blocks(name):
            if not cell["cell"].startswith(VMS):
                continue
            for arm, curve in curves.items():
                runs = [_point(run) for run in cell["runs"] if run["arm"].removesuffix("-again") == arm]
                if runs:
                    yield _foretold(name.partition("/")[0], arm, curve, runs)


def _foretold(what: str, arm: str, curve: Curve, runs: Sequence[Point]) -> Foretold:
    """By the curve's busiest point if they were busier."""
    mean = _mean(runs)
    curve_ms = curve.p99_ms(np.array([min(mean.busy, curve.busiest)]))[0]
    return Foretold(what, arm, mean.busy, float(curve_ms), mean.p99_ms)


def _mean(points: Sequence[Point]) -> Point:
    busy, p99_ms = zip(*points, strict=True)
    return Point(statistics.fmean(busy), statistics.fmean(p99_ms))


def _blocks(name: str) -> Iterator[Mapping[str, Any]]:
    for line in (STUDIES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _point(run: Mapping[str, Any]) -> Point:
    found = seen(run)
    return Point(found.cores / CPUS, found.p99_ms)
