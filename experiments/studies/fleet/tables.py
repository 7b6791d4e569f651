"""The results as tables and as a picture."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...results.markdown import markdown_table
from .curves import CPUS, CRITICAL, ORACLE, OURS, PLAIN, Curve
from .demand import Demand
from .measured_tables import ARMS
from .moves import Lived
from .paper import held_on_paper

COLOURS = dict(zip(ARMS, ("#999999", "#0072B2", "#D55E00", "#009E73"), strict=True))


class Held(NamedTuple):
    """VMs a host of one arm, on one day of a fleet. `limit`: of p99 over that of a VM alone."""

    demand: str
    limit: float
    arm: str
    seed: int
    vms_each: float


class HeldMoving(NamedTuple):
    """VMs a host of a small fleet that was placed by number, whether hints were followed or not."""

    demand: str
    limit: float
    arm: str
    seed: int
    hints: bool
    vms_each: float


class Moved(NamedTuple):
    """Part of a small fleet's host time in which p99 of one arm is more than twice that alone."""

    vms: str
    start: str
    hints: bool
    arm: str
    seed: int
    over: float
    moves: int


class MadeIn(NamedTuple):
    """One move of one small fleet."""

    vms: str
    start: str
    arm: str
    seed: int
    step: int
    vm: int
    source: int
    target: int


class Life(NamedTuple):
    """What one small fleet lived through. `arm`: of the hosts that follow hints, None if none do."""

    vms: str
    start: str
    arm: str | None
    seed: int
    lived: Lived

    def made(self) -> Iterator[MadeIn]:
        """Its moves."""
        for move in self.lived.moves:
            yield MadeIn(self.vms, self.start, self.arm or "", self.seed, *move)


def capacity_table(rows: Sequence[Held]) -> str:
    """VMs a host on EEVDF, and how many more of them with each other arm."""
    lines = []
    for demand, limit in dict.fromkeys((row.demand, row.limit) for row in rows):
        of = {
            arm: {row.seed: row.vms_each for row in rows if row[:3] == (demand, limit, arm)} for arm in ARMS
        }
        plain = of[PLAIN]
        more = [_more(of[arm], plain) for arm in list(ARMS)[1:]]
        lines.append([demand, f"{limit:g}", _spread(plain.values(), "{:.2f}"), *more])
    return markdown_table(["demand", "p99 at most, over alone", *ARMS.values()], lines)


def held_moving_table(rows: Sequence[HeldMoving]) -> str:
    """VMs a host without hints, and how many more with them."""
    arms = (PLAIN, OURS)
    lines = []
    for demand, limit in dict.fromkeys((row.demand, row.limit) for row in rows):
        lines.append([demand, f"{limit:g}"])
        for arm in arms:
            there = [row for row in rows if row[:3] == (demand, limit, arm)]
            without, followed = (
                {row.seed: row.vms_each for row in there if row.hints is hints} for hints in (False, True)
            )
            lines[-1] += [_spread(without.values(), "{:.2f}"), _more(followed, without)]
    head = [word for arm in arms for word in (ARMS[arm], "with hints")]
    return markdown_table(["demand", "p99 at most, over alone", *head], lines)


def moves_table(rows: Sequence[Moved]) -> str:
    """Part of the time beyond the limit, and the moves a day and 100 hosts."""
    lines = []
    for vms, start, hints in dict.fromkeys((row.vms, row.start, row.hints) for row in rows):
        there = [row for row in rows if row[:3] == (vms, start, hints)]
        lines.append([vms, start, "followed" if hints else "–"])
        for arm in (PLAIN, OURS):
            of = [row for row in there if row.arm == arm]
            lines[-1].append(_spread([100 * row.over for row in of], "{:.2f}"))
            lines[-1].append(_spread([float(row.moves) for row in of], "{:.0f}") if hints else "–")
    columns = [word for arm in (PLAIN, OURS) for word in (f"{ARMS[arm]}: % of time over", "moves")]
    head = ["VMs a host", "placed", "hints", *columns]
    return markdown_table(head, lines)


def paper_table(rows: Sequence[Held], demands: Mapping[str, Demand], curves: Mapping[str, Curve]) -> str:
    """At twice p99 alone: what paper says, and the mean of the simulated."""
    limit = 2.0
    lines = []
    for name, demand in demands.items():
        on_paper, simulated = (
            {
                arm: held_on_paper(demand, CPUS * curve.most_busy(limit * curves[PLAIN].alone_ms))
                for arm, curve in curves.items()
            },
            {
                arm: statistics.fmean(row.vms_each for row in rows if row[:3] == (name, limit, arm))
                for arm in curves
            },
        )
        lines.append([name])
        for of in (on_paper, simulated):
            more = [f"{100 * (of[arm] / of[PLAIN] - 1):+.0f} %" for arm in (CRITICAL, ORACLE, OURS)]
            lines[-1] += [f"{of[PLAIN]:.2f}", " / ".join(more)]
    names = " / ".join(ARMS[arm] for arm in (CRITICAL, ORACLE, OURS))
    head = ["demand", "EEVDF, on paper", f"{names}, on paper", "EEVDF, simulated", "simulated"]
    return markdown_table(head, lines)


def _more(own: Mapping[int, float], plain: Mapping[int, float]) -> str:
    """Than without, by seed; where that holds none, how many."""
    if not all(plain.values()):
        return _spread(own.values(), "{:.2f} VMs")
    return _spread([100 * (own[seed] / plain[seed] - 1) for seed in plain], "{:+.0f} %")


def _spread(values: Iterable[float], form: str) -> str:
    """The mean of the seeds and, if they differ as shown, the lowest and the highest."""
    known = sorted(values)
    mean, low, high = (form.format(each) for each in (statistics.fmean(known), known[0], known[-1]))
    return mean if low == high else f"{mean} [{low}, {high}]"


def picture(curves: Mapping[str, Curve], rows: Sequence[Held], path: Path) -> None:
    """The curves, and what follows from them for the first demand."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for arm, curve in curves.items():
        busy = np.linspace(0.1, curve.busiest, 200)
        left.semilogy(100 * busy, curve.p99_ms(busy), color=COLOURS[arm], label=ARMS[arm].strip("`"))
    left.set_xlabel("CPUs busy, %")
    left.set_ylabel("p99, ms")
    demand = rows[0].demand
    limits = sorted({row.limit for row in rows})
    width = 0.8 / len(curves)
    for number, arm in enumerate(curves):
        held = [
            statistics.fmean(row.vms_each for row in rows if row[:3] == (demand, limit, arm))
            for limit in limits
        ]
        places = [at + (number - (len(curves) - 1) / 2) * width for at in range(len(limits))]
        right.bar(places, held, 0.93 * width, color=COLOURS[arm])
    right.set_xticks(range(len(limits)), [f"{limit:g} times alone" for limit in limits])
    right.set_xlabel("limit of p99, kept in 99 % of all hosts' five minutes")
    right.set_ylabel("VMs a host of 16 CPUs")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=len(curves))
    figure.savefig(path)
