"""Measures block after block; each that is finished is kept at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.blame import BlameWatch
from dasec.lab.kit.needs import find_tools, find_tree
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.run import Bench, DemoPlan, Tools, calibrate, measure_one
from dasec.lab.kit.tree import Tree

from ...places.ground import Say, blame_watch, prepared
from ...plan.blocks import Block, Named
from ...plan.cells import Cell, Wish, plan_of
from ...results.store import Done, Store
from ...run.clock import Clock, minutes

EXPERIMENT = "loads"


@dataclass(frozen=True, slots=True)
class Site:
    """Where runs happen."""

    tools: Tools
    tree: Tree
    directory: Path
    calibration: float
    blame: BlameWatch | None

    def bench(self, plan: DemoPlan, records: Path | None) -> Bench:
        """For the runs of this plan, whose records go there, if anywhere."""
        return Bench(plan, self.tools, self.tree, self.directory, self.calibration, self.blame, records)


def measure_blocks(wish: Wish, blocks: Sequence[Block[Cell]], store: Store[Wish], say: Say) -> None:
    """All blocks that are not in the store yet. Whatever ends it, the host is as before afterwards."""
    finished = {one.key for one in store.done()}
    missing = [block for block in blocks if block.key not in finished]
    if finished:
        say(f"{len(blocks) - len(missing)} of {len(blocks)} blocks are there already")
    if not missing:
        return
    clock = Clock(len(missing) * len(wish.arms), wish.run_s)
    with site(blame=wish.blame, say=say) as place:
        for number, block in enumerate(missing, 1):
            say(
                f"{number}/{len(missing)} {block.cell.name}, repetition"
                f" {block.repetition + 1}/{wish.repetitions}: {minutes(clock.left_s)} left"
            )
            begun_s = time.monotonic()
            done = store.add(block, _measure(wish, place, block, store))
            clock.add(time.monotonic() - begun_s, len(block.arms))
            check_arrivals(block, done)


@contextlib.contextmanager
def site(*, blame: bool, say: Say) -> Iterator[Site]:
    """The host made ready for runs, and as before afterwards."""
    tools, tree = find_tools(), find_tree()
    with prepared(tree) as directory, blame_watch(say, wanted=blame) as watch:
        yield Site(tools, tree, directory, calibrate(tools.load, directory), watch)


def _measure(wish: Wish, place: Site, block: Block[Cell], store: Store[Wish]) -> list[RunResult]:
    bench = place.bench(plan_of(wish, block), store.records(block) if wish.records else None)
    return [measure_one(bench, arm, block.repetition, lambda: None) for arm in block.arms]


def check_arrivals(block: Block[Named], done: Done) -> None:
    """All arms of a block were asked the same: a difference would be a mistake of the suite."""
    asked = {tuple(tenant.latencies.count + tenant.errors for tenant in run.tenants) for run in done.runs}
    if len(asked) > 1:
        raise Refusal(
            ExitStatus.FAILED, f"{EXPERIMENT}: {block.cell.name}: arms had different requests: {asked}"
        )
