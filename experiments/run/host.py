"""An experiment on this host, block after block; each that is finished is kept at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.bench import Bench, RunPlan
from dasec.lab.kit.blame import BlameWatch
from dasec.lab.kit.blocks import Allowance, measure_block
from dasec.lab.kit.load_driver import calibrate
from dasec.lab.kit.needs import find_tree
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.run import measure_one
from dasec.lab.kit.sentinel import measuring
from dasec.lab.kit.tree import Tree

from ..places.ground import Say, blame_watch
from ..plan.blocks import Block, Named
from ..plan.order import Planned
from ..plan.terms import PlacedCell
from ..results.store import Store, WishT
from .clock import Clock, minutes

ATTEMPTS, LEAST_PART = 5, 0.8
"""Whoever wakes often starves what runs beside it on some kernels, the process that reads the counters too
(experiments/studies/fairness): a run that was watched for less than this part of its time is made again."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where runs happen."""

    tree: Tree
    directory: Path
    calibration: float
    blame: BlameWatch | None

    def bench(self, plan: RunPlan, records: Path | None) -> Bench:
        """For the runs of this plan, whose records go there, if anywhere."""
        return Bench(plan, self.tree, self.directory, self.calibration, self.blame, records)


def measure_here(
    experiment: Planned, missing: Sequence[Block[PlacedCell]], store: Store[Planned], say: Say
) -> None:
    """These blocks. Whatever ends it, the host is as before afterwards. Refuses with what was wrong with
    some, at the end."""
    wrong: list[str] = []
    clock = Clock(len(missing) * len(experiment.arms), experiment.run_s)
    allowance = Allowance()
    with _site(blame=experiment.blame, say=say) as place:
        for number, block in enumerate(missing, 1):
            say(
                f"{number}/{len(missing)} {block.cell.name}, repetition"
                f" {block.repetition + 1}/{experiment.repetitions}: {minutes(clock.left_s)} left"
            )
            begun_s = time.monotonic()
            bench = place.bench(experiment.plan(block), store.records(block) if experiment.records else None)
            measure = partial(_run, bench, block.repetition)
            if why := keep(experiment, store, block, measure_block(block.arms, measure, allowance)):
                wrong.append(why)
            clock.add(time.monotonic() - begun_s, len(block.arms))
    if wrong:
        raise Refusal(ExitStatus.FAILED, *wrong)


@contextlib.contextmanager
def _site(*, blame: bool, say: Say) -> Iterator[Site]:
    """The host made ready for runs, and as before afterwards."""
    tree = find_tree()
    with measuring(tree) as directory, blame_watch(say, wanted=blame) as watch:
        yield Site(tree, directory, calibrate(directory), watch)


def _run(bench: Bench, repetition: int, arm: str) -> RunResult:
    for _ in range(ATTEMPTS):
        found = measure_one(bench, arm, repetition, lambda: None)
        if found.seconds >= LEAST_PART * bench.plan.timing.seconds:
            return found
    raise Refusal(ExitStatus.FAILED, f"{arm}: the counters could not be read in time {ATTEMPTS} times")


def keep(
    experiment: Planned, store: Store[WishT], block: Block[Named], runs: Sequence[RunResult]
) -> str | None:
    """Keeps a finished block, and says nothing. Of one whose arms were not asked the same, which would be a
    mistake of ours, nothing is kept, so that no report has it; what is wrong with it."""
    asked = {tuple(tenant.latencies.count for tenant in run.tenants) for run in runs}
    if experiment.same_requests and len(asked) > 1:
        where = f"{block.cell.name}, repetition {block.repetition + 1}"
        return f"{where}: arms had different requests, {asked}: not kept"
    store.add(block, runs)
    return None
