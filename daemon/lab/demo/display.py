"""What a user sees while the demo runs: a bar for each situation with what it shows so far, and the time
left; plain lines where no terminal is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from ..kit.bench import RunPlan
from ..kit.blocks import RunProgress
from ..kit.results import Measured, RunResult
from .lines import so_far

REFRESH_S = 1.0
"""The display runs on the cores that are measured, and for every arm alike; no more often than it must."""


class Clock:
    """How far we are: runs that are over count as planned, however long they took; those that are made
    again, as if they were not over."""

    def __init__(self, plans: Sequence[RunPlan]) -> None:
        self.total_s = sum(plan.total_s for plan in plans)
        self._runs = sum(len(plan.arms) * plan.repetitions for plan in plans)
        self._run_s = self.total_s / self._runs
        self._begun = 0
        self._begun_s = time.monotonic()

    def begin(self) -> None:
        """The next run begins."""
        self._begun = min(self._begun + 1, self._runs)
        self._begun_s = time.monotonic()

    @property
    def left_s(self) -> float:
        """How much of the total is ahead of us."""
        in_run_s = min(time.monotonic() - self._begun_s, self._run_s)
        return self.total_s - max(0, self._begun - 1) * self._run_s - (in_run_s if self._begun else 0.0)


class FoundSoFar:
    """The blocks that count so far, and what they show."""

    def __init__(self, plans: Sequence[RunPlan]) -> None:
        self._plans = plans
        self._runs: list[list[RunResult]] = [[] for _ in plans]

    def keep(self, number: int, runs: Sequence[RunResult]) -> None:
        """A block of a plan is over."""
        self._runs[number] += runs

    def repetitions(self, number: int) -> int:
        """So many blocks of a plan are over."""
        return len(self._runs[number]) // len(self._plans[number].arms)

    def text(self, number: int) -> str:
        """`critical 0.47`: of the plain host's mean; nothing before the first block is over."""
        plan, done = self._plans[number], self.repetitions(number)
        names = tuple(one.name for one in plan.scenario.tenants)
        found = Measured(plan.arms, names, done, tuple(self._runs[number]))
        return ", ".join(f"{arm} {ratio:.2f}" for arm, ratio in so_far(found).items()) if done else ""


@contextlib.contextmanager
def shown(console: Console, names: Sequence[str], plans: Sequence[RunPlan]) -> Iterator[RunProgress]:
    """What to tell when a run begins, and every now and then."""
    if console.is_terminal:
        with _bars(console, names, plans) as progress:
            yield progress
    else:
        yield _lines(console, names, plans)


@contextlib.contextmanager
def _bars(console: Console, names: Sequence[str], plans: Sequence[RunPlan]) -> Iterator[RunProgress]:
    clock, found = Clock(plans), FoundSoFar(plans)
    said = TextColumn("{task.fields[said]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), said)
    refreshed_s = 0.0

    def begin(number: int, arm: str, repetition: int) -> None:  # noqa: ARG001  # the bars say which
        clock.begin()
        bar.update(left, said=f"{arm} in {names[number]}")

    def tick() -> None:
        nonlocal refreshed_s
        if time.monotonic() - refreshed_s >= REFRESH_S:
            refreshed_s = time.monotonic()
            bar.update(left, completed=clock.total_s - clock.left_s, description=f"{clock.left_s:.0f} s left")
            bar.refresh()

    def keep(number: int, runs: Sequence[RunResult]) -> None:
        found.keep(number, runs)
        bar.update(bars[number], completed=found.repetitions(number), said=f"mean: {found.text(number)}")

    with Bar(*columns, console=console, auto_refresh=False) as bar:
        bars = [
            bar.add_task(name, total=plan.repetitions, said="")
            for name, plan in zip(names, plans, strict=True)
        ]
        left = bar.add_task("starting", total=int(clock.total_s), said="")
        yield RunProgress(begin, tick, keep)


def _lines(console: Console, names: Sequence[str], plans: Sequence[RunPlan]) -> RunProgress:
    clock, found = Clock(plans), FoundSoFar(plans)

    def begin(number: int, arm: str, repetition: int) -> None:
        clock.begin()
        where = f"{names[number]}, repetition {repetition + 1}/{plans[number].repetitions}"
        console.print(f"{where}: {arm}: {clock.left_s:.0f} s left", highlight=False)

    def keep(number: int, runs: Sequence[RunResult]) -> None:
        found.keep(number, runs)
        console.print(f"{names[number]}: mean so far: {found.text(number)}", highlight=False)

    return RunProgress(begin, tick=lambda: None, keep=keep)
