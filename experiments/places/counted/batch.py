"""Many guests, some at a time, with the time that is left."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from .machine import GuestFailedError, Machine, Task, Told, measure

Keep = Callable[[Task, Told], None]
"""Takes what a guest said that has done everything."""


@dataclass(slots=True)
class _Running:
    """The guests of a batch: whoever waits for them may be told to stop, and they compute for an hour."""

    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    is_over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, process: subprocess.Popen[str]) -> None:
        """One has begun; too late, if it is over."""
        with self.lock:
            self.processes.append(process)
            if self.is_over:
                process.kill()

    def end(self) -> None:
        """All of them, and those that begin just now."""
        with self.lock:
            self.is_over = True
            for process in self.processes:
                process.kill()


def measure_all(machine: Machine, tasks: Sequence[Task], guests: int, keep: Keep) -> list[str]:
    """All tasks, `guests` at a time; what failed, in a line each. However this ends, all guests have."""
    failures, running = [], _Running()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"))
    with (
        Progress(
            *columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=Console()
        ) as shown,
        ThreadPoolExecutor(guests) as pool,
    ):
        bar = shown.add_task("measuring", total=sum(task.runs for task in tasks))
        waiting = {
            pool.submit(measure, machine, task, lambda: shown.advance(bar), running.add): task
            for task in tasks
        }
        try:
            for done in as_completed(waiting):
                task = waiting[done]
                try:
                    keep(task, done.result())
                except GuestFailedError as error:
                    failures.append(str(error))
                    continue
                shown.console.print(f"{task.name}: done", highlight=False)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            running.end()
    return failures


def twice(machine: Machine, task: Task, guests: int) -> tuple[Told, Told]:
    """The same task in two guests, for whoever wants to know whether they say the same. Raises
    GuestFailedError, with a line for each that failed."""
    said: dict[str, Told] = {}
    tasks = tuple(replace(task, name=f"{task.name}, run {number}") for number in (1, 2))
    failures = measure_all(machine, tasks, guests, lambda one, told: said.update({one.name: told}))
    if failures:
        raise GuestFailedError("\n".join(failures))
    first, second = (said[one.name] for one in tasks)
    return first, second
