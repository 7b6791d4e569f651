"""p99 of one host over how busy it is, as the deterministic machine measured it."""

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
SWEEP = "testbed/results/sweep"
"""16 CPUs, EEVDF (6.12), 1 to 9 VMs of `bursts`, threads free to move."""

OURS_RUNS = ("sched_ext/results/sixteen", "sched_ext/results/sixteen-busy")
"""Our own scheduler on those 16 CPUs."""

OURS_ON_8 = ("sched_ext/results/idle", "sched_ext/results/free")
"""And on 8: taken as ratios to EEVDF there."""

CHECKS = (*OURS_RUNS, "testbed/results/causes", "testbed/results/headline")
"""More runs on 16 CPUs of the same VMs, no points of the curves of EEVDF, `critical` and the oracle."""

VMS = "bursts-130-"
"""The kind of VMs of which all curves are: their threads are free to move."""

CPUS = 16
PLAIN, CRITICAL, ORACLE, OURS = "none", "critical", "oracle", "scx"

Floats = NDArray[np.float64]


class Point(NamedTuple):
    """One run: CPUs used of all, and mean p99 of its VMs."""

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


def measured() -> Mapping[str, Sequence[Point]]:
    """All arms' points."""
    sweep = list(_cells(SWEEP))
    arms = {arm: [_point(runs[arm]) for runs in sweep] for arm in (PLAIN, CRITICAL, ORACLE)}
    plain = Curve.through(arms[PLAIN])
    ours = [_point(runs[OURS]) for name in OURS_RUNS for runs in _cells(name)]
    for name in OURS_ON_8:
        for runs in _cells(name):
            base, scx = (seen(runs[arm]) for arm in (PLAIN, OURS))
            busy = base.cores / 8
            ours.append(Point(busy, _at(plain, busy) * scx.p99_ms / base.p99_ms))
    return arms | {OURS: ours}


class Foretold(NamedTuple):
    """A cell that is no point of the arm's curve: how busy it was, p99 by the curve and as measured."""

    arm: str
    busy: float
    curve_ms: float
    was_ms: float

    @property
    def off(self) -> float:
        """Of what was measured."""
        return self.curve_ms / self.was_ms - 1


def checks() -> Iterator[Foretold]:
    """Each such cell, the mean of its runs; and each run of our scheduler by its curve without it."""
    points = measured()
    for name in CHECKS:
        for cell in _blocks(name):
            if not cell["cell"].startswith(VMS):
                continue
            for arm in (PLAIN, CRITICAL, ORACLE):
                runs = [_point(run) for run in cell["runs"] if run["arm"].removesuffix("-again") == arm]
                if runs:
                    busy, was_ms = (statistics.fmean(each) for each in zip(*runs, strict=True))
                    yield Foretold(arm, busy, _at(Curve.through(points[arm]), busy), was_ms)
    for name in OURS_RUNS:
        for arms in _cells(name):
            left_out = _point(arms[OURS])
            others = Curve.through([each for each in points[OURS] if each != left_out])
            yield Foretold(OURS, left_out.busy, _at(others, left_out.busy), left_out.p99_ms)


def _at(curve: Curve, busy: float) -> float:
    """Beyond the busiest point: as there."""
    return float(curve.p99_ms(np.array([min(busy, curve.busiest)]))[0])


def _cells(name: str) -> Iterator[Mapping[str, Mapping[str, Any]]]:
    for block in _blocks(name):
        yield {run["arm"]: run for run in block["runs"]}


def _blocks(name: str) -> Iterator[Mapping[str, Any]]:
    for line in (STUDIES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _point(run: Mapping[str, Any]) -> Point:
    found = seen(run)
    return Point(found.cores / CPUS, found.p99_ms)
