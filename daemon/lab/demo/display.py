"""What a user sees while the demo runs: a bar with the time left, or plain lines where no terminal is."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from .run import Plan, Progress

REFRESH_S = 1.0
"""The display runs on the cores that are measured, and for every arm alike; no more often than it must."""


class Clock:
    """How far we are: runs that are over count as planned, however long they took."""

    def __init__(self, plan: Plan) -> None:
        self.total_s = plan.total_s
        self._run_s = plan.total_s / (len(plan.arms) * plan.repetitions)
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
def shown(console: Console, plan: Plan) -> Iterator[Progress]:
    """What to tell when a run begins, and every now and then."""
    if console.is_terminal:
        with _bar(console, plan) as progress:
            yield progress
    else:
        yield _lines(console, plan)


@contextlib.contextmanager
def _bar(console: Console, plan: Plan) -> Iterator[Progress]:
    clock = Clock(plan)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("time left"), TimeRemainingColumn())
    refreshed_s = 0.0

    def begin(arm: str, repetition: int) -> None:
        clock.begin()
        bar.update(task, description=f"repetition {repetition + 1}/{plan.repetitions}: {arm:<12}")

    def tick() -> None:
        nonlocal refreshed_s
        if time.monotonic() - refreshed_s >= REFRESH_S:
            refreshed_s = time.monotonic()
            bar.update(task, completed=clock.done_s)
            bar.refresh()

    with Bar(*columns, console=console, auto_refresh=False, speed_estimate_period=clock.total_s) as bar:
        task = bar.add_task("starting", total=clock.total_s)
        yield Progress(begin, tick)


def _lines(console: Console, plan: Plan) -> Progress:
    clock = Clock(plan)

    def begin(arm: str, repetition: int) -> None:
        clock.begin()
        left_s = clock.total_s - clock.done_s
        console.print(
            f"repetition {repetition + 1}/{plan.repetitions}: {arm}: {left_s:.0f} s left", highlight=False
        )

    return Progress(begin, tick=lambda: None)
