"""Runs in blocks: all arms of a repetition follow each other and have the same arrivals, the plain host among
them twice (A/A). A block that the hypervisor hit is made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .bench import Bench, RunPlan
from .load_driver import calibrate
from .results import Measured, RunResult
from .run import measure_one
from .tree import Tree

STOLEN = 0.02
"""Of a run's CPU time: a block with a run from which the hypervisor took more is made once more."""

AGAIN = 6
"""So many runs are thrown away in a whole series; on a host from which it always takes much, that is how it
is. Two blocks of a demo, about 20 s, which leaves it under five minutes."""


@dataclass(slots=True)
class Allowance:
    """How many runs may still be thrown away, and how many were."""

    left: int = AGAIN
    spent: int = 0

    def covers(self, runs: int) -> bool:
        """So many more are thrown away, if they may be."""
        if runs > self.left:
            return False
        self.left -= runs
        self.spent += runs
        return True


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Told when a run begins (its plan, arm and repetition), several times a second between its ends, and of
    each block that counts when it is over."""

    begin: Callable[[int, str, int], None]
    tick: Callable[[], None]
    keep: Callable[[int, Sequence[RunResult]], None]


def measure_block(
    arms: Sequence[str], measure: Callable[[str], RunResult], allowance: Allowance
) -> list[RunResult]:
    """All arms of a block, in this order; from the first one again as soon as one was hit."""
    runs: list[RunResult] = []
    while len(runs) < len(arms):
        runs.append(measure(arms[len(runs)]))
        if runs[-1].steal > STOLEN and allowance.covers(len(runs)):
            runs = []
    return runs


def _one(progress: RunProgress, bench: Bench, number: int, repetition: int, arm: str) -> RunResult:
    progress.begin(number, arm, repetition)
    return measure_one(bench, arm, repetition, progress.tick)


def measure_all(
    plans: Sequence[RunPlan], tree: Tree, directory: Path, progress: RunProgress, records: Path | None = None
) -> tuple[Measured, ...]:
    """All repetitions of all arms of all plans, one repetition of each plan in turn. Raises Refusal."""
    calibration = calibrate(directory)
    runs: list[list[RunResult]] = [[] for _ in plans]
    again = [0 for _ in plans]
    allowance = Allowance()
    for repetition in range(max(plan.repetitions for plan in plans)):
        for number, plan in enumerate(plans):
            if repetition >= plan.repetitions:
                continue
            kept = records and records / str(number)
            if kept:
                kept.mkdir(parents=True, exist_ok=True)
            bench = Bench(plan, tree, directory, calibration, records=kept)
            before = allowance.spent
            measure = partial(_one, progress, bench, number, repetition)
            block = measure_block(plan.orders[repetition], measure, allowance)
            progress.keep(number, block)
            runs[number] += block
            again[number] += allowance.spent - before
    return tuple(
        Measured(
            plan.arms,
            tuple(one.name for one in plan.scenario.tenants),
            plan.repetitions,
            tuple(found),
            thrown,
        )
        for plan, found, thrown in zip(plans, runs, again, strict=True)
    )
