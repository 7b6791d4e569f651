"""Measures run after run; each that is finished is kept at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import needs
from dasec.lab.kit.bench import run_name
from dasec.lab.kit.blocks import Allowance, measure_block
from dasec.lab.kit.driver import Driver
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.run import measure_one
from dasec.lab.kit.sentinel import measuring
from dasec.linux.cgroupfs import find_hierarchy

from ..places.ground import Say, blame_watch
from ..plan.blocks import Block, blocks_of
from ..plan.points import Cell, Gap, arms_of, cells_of
from ..plan.schema import Experiment
from ..results.folder import Conditions, raw_folder
from ..results.store import Store
from . import arrivals
from .bench import Site
from .clock import Clock, minutes

RUN_OVERHEAD_S = 3.0
"""What a run takes beside its own time, about: starts, ends, late answers."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What there is to do here."""

    blocks: tuple[Block[Cell], ...]
    conditions: Conditions
    run_s: float

    @property
    def runs(self) -> int:
        """All of them."""
        return sum(len(block.arms) for block in self.blocks)


def schedule(
    experiment: Experiment, drivers: Mapping[str, Driver], missing_place: Callable[[str], str | None]
) -> Schedule:
    """Which blocks can be measured here, in their order; and what cannot, or is not as it should be. Why
    there is no such place is told in one line; None: there is."""
    reasons = {name: drivers[name].missing() for name in experiment.drivers}
    reasons |= {name: missing_place(name) for name in experiment.places}
    missing = {name: why for name, why in reasons.items() if why is not None}
    cells = cells_of(experiment, experiment.cores, drivers, missing)
    blocks = tuple(
        Block(block.cell, block.repetition, tuple(arm for arm in block.arms if arm in arms))
        for block in blocks_of(cells.possible, experiment.arms, experiment.repetitions, experiment.seed)
        for arms in [arms_of(experiment, block.cell)]
    )
    run_s = experiment.warmup_s + experiment.seconds + RUN_OVERHEAD_S
    return Schedule(blocks, Conditions(cells.gaps, tuple(_missed(experiment))), run_s)


def _missed(experiment: Experiment) -> Sequence[str]:
    """Preconditions that this host does not meet at the moment."""
    found = []
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    if cores < experiment.needs.cores:
        found.append(f"needs.cores: {experiment.needs.cores} cores, this host has {cores}")
    if load > experiment.needs.load:
        found.append(f"needs.load: a load average of {experiment.needs.load:g} at most, it is {load:.2f}")
    return found


def refuse_unfit(experiment: Experiment, found: Schedule, *, anyway: bool) -> None:
    """Refuses where the experiment would mean nothing here."""
    lacking = [
        f"needs.drivers: {gap.what}: {gap.why}"
        for gap in found.conditions.gaps
        if gap.what.rpartition(": ")[2] in experiment.needs.drivers
    ]
    lines = lacking if anyway else [*lacking, *found.conditions.missed]
    if lines:
        hint = "" if lacking else ": --anyway runs it nevertheless, and says so in the report"
        raise Refusal(ExitStatus.HOST, *(f"{line}{hint}" for line in lines))


def measure_all(
    experiment: Experiment,
    drivers: Mapping[str, Driver],
    found: Schedule,
    store: Store[Experiment],
    calibration: float,
    say: Say,
) -> tuple[Gap, ...]:
    """All blocks that are not in the store yet, and which cells failed: their other repetitions are left
    out. Whatever ends it, the host is as before afterwards."""
    finished = {one.key for one in store.done()}
    left = [block for block in found.blocks if block.key not in finished]
    if finished:
        say(f"{len(found.blocks) - len(left)} of {len(found.blocks)} blocks are there already")
    if not left:
        return ()
    failed: dict[str, Gap] = {}
    clock = Clock(sum(len(block.arms) for block in left), found.run_s)
    tree = needs.find_tree()
    with measuring(tree) as directory, blame_watch(say, wanted=experiment.blame) as watch:
        site = Site(experiment, drivers, tree, find_hierarchy(), directory, watch, calibration)
        allowance = Allowance()
        for number, block in enumerate(left, 1):
            if block.cell.name in failed:
                clock.runs_left -= len(block.arms)
                continue
            say(
                f"{number}/{len(left)} {block.cell.name}, repetition"
                f" {block.repetition + 1}/{experiment.repetitions}: {minutes(clock.left_s)} left"
            )
            try:
                _measure(site, block, store, Progress(clock, say), allowance)
            except Refusal as refusal:
                say(f"failed: {refusal}")
                failed[block.cell.name] = Gap(block.cell.name, f"failed: {'; '.join(refusal.lines)}")
    return tuple(failed.values())


@dataclass(frozen=True, slots=True)
class Progress:
    """Told to people."""

    clock: Clock
    say: Say


def _measure(
    site: Site, block: Block[Cell], store: Store[Experiment], progress: Progress, allowance: Allowance
) -> None:
    """The block, from where it was interrupted."""
    before = store.begun(block)
    known = {run.arm: run for run in before}
    clock, thrown_away = progress.clock, allowance.spent
    clock.runs_left -= len(known)
    raw = raw_folder(store.folder, block.cell)
    raw.mkdir(parents=True, exist_ok=True)
    bench = site.bench(block.cell, raw)

    def measure(arm: str) -> RunResult:
        if arm in known:
            return known.pop(arm)
        begun_s = time.monotonic()
        run = measure_one(bench, arm, block.repetition, lambda: None)
        folder = raw / run_name(arm, block.repetition)
        arrivals.write(folder, arrivals.seen_in(folder, [one.name for one in run.tenants]))
        store.keep(block, run)
        clock.add(time.monotonic() - begun_s, 1)
        progress.say(f"  {arm}: done; {minutes(clock.left_s)} left")
        return run

    runs = measure_block(block.arms, measure, allowance)
    clock.runs_left += allowance.spent - thrown_away
    _check_arrivals(block, store.folder)
    store.add(block, runs, interrupted=bool(before))


def _check_arrivals(block: Block[Cell], folder: Path) -> None:
    """All arms of a block were asked the same: a difference would be a mistake of a driver."""
    by_arm = {
        arm: arrivals.read(raw_folder(folder, block.cell) / run_name(arm, block.repetition))
        for arm in block.arms
    }
    if other := arrivals.differing(by_arm):
        raise Refusal(
            ExitStatus.FAILED,
            f"{block.cell.name}: arms had different arrivals: {', '.join(other)}",
        )
