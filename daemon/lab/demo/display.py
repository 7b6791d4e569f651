"""What a user sees while the demo runs: a bar with the time left, or plain lines where no terminal is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ..kit.run import DemoPlan, DemoProgress

REFRESH_S = 1.0
"""The display runs on the cores that are measured, and for every arm alike; no more often than it must."""


class Clock:
    """How far we are: runs that are over count as planned, however long they took."""

    def __init__(self, plans: Sequence[DemoPlan]) -> None:
        self.total_s = sum(plan.total_s for plan in plans)
        self._run_s = self.total_s / sum(len(plan.arms) * plan.repetitions for plan in plans)
        self._begun = 0
        self._begun_s = time.monotonic()

    def begin(self) -> None:
        """The next run begins."""
        self._begun += 1
        self._begun_s = time.monotonic()

    @property
    def done_s(self) -> float:
        """How much of the total is behind us."""
        in_run_s = min(time.monotonic() - self._begun_s, self._run_s)
        return max(0, self._begun - 1) * self._run_s + (in_run_s if self._begun else 0.0)


@contextlib.contextmanager
def shown(console: Console, plans: Sequence[DemoPlan]) -> Iterator[DemoProgress]:
    """What to tell when a run begins, and every now and then."""
    if console.is_terminal:
        with _bar(console, plans) as progress:
            yield progress
    else:
        yield _lines(console, plans)


@contextlib.contextmanager
def _bar(console: Console, plans: Sequence[DemoPlan]) -> Iterator[DemoProgress]:
    clock = Clock(plans)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("time left"), TimeRemainingColumn())
    refreshed_s = 0.0

    def begin(number: int, arm: str, repetition: int) -> None:
        clock.begin()
        bar.update(task, description=f"{_where(plans, number, repetition)}: {arm:<12}")

    def tick() -> None:
        nonlocal refreshed_s
        if time.monotonic() - refreshed_s >= REFRESH_S:
            refreshed_s = time.monotonic()
            bar.update(task, completed=clock.done_s)
            bar.refresh()

    with Bar(*columns, console=console, auto_refresh=False, speed_estimate_period=clock.total_s) as bar:
        task = bar.add_task("starting", total=clock.total_s)
        yield DemoProgress(begin, tick)


def _lines(console: Console, plans: Sequence[DemoPlan]) -> DemoProgress:
    clock = Clock(plans)

    def begin(number: int, arm: str, repetition: int) -> None:
        clock.begin()
        left_s = clock.total_s - clock.done_s
        console.print(f"{_where(plans, number, repetition)}: {arm}: {left_s:.0f} s left", highlight=False)

    return DemoProgress(begin, tick=lambda: None)


def _where(plans: Sequence[DemoPlan], number: int, repetition: int) -> str:
    return f"situation {number + 1}/{len(plans)}, repetition {repetition + 1}/{plans[number].repetitions}"
