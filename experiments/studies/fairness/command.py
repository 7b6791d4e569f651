"""The experiment as a command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts, needs
from dasec.lab.kit.errors import Interrupted
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.run import Bench, measure_one
from dasec.lab.kit.signals import interruptible

from ...plan.blocks import Block, blocks_of
from ...results.store import Store
from ...run.clock import minutes
from ...run.entry import enter
from ..loads.runner import site
from .choice import EXPERIMENT, choosing, wish_for
from .publish import publish
from .wish import ARMS, Cell, Wish, plan_of

ATTEMPTS, LEAST_PART = 5, 0.8
"""Whoever wakes often starves what runs beside it on this kernel, the process that reads the counters too
(README.md): a run that was watched for less than this part of its time is made again."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@choosing
@click.option("--records", is_flag=True, help="Keep the daemon's record of every run.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("results/fairness"))
@click.option("--report", "report_only", is_flag=True, help="Only the report of what --out holds.")
def command(out: Path, records: bool, report_only: bool, **options: object) -> None:  # noqa: FBT001
    """What each of two workloads on saturated cores gets under `critical`, beside what it gets without.

    What is finished is kept: the same command with the same --out goes on after an interruption.
    """
    store = Store(out, Wish, EXPERIMENT)
    known = store.asked()
    if report_only:
        if known is None:
            raise Refusal(ExitStatus.USAGE, f"{EXPERIMENT}: {out}: holds no results: give their folder")
        publish(store, known)
        return
    wish = wish_for(options, len(os.sched_getaffinity(0)), store)
    needs.check_root()
    needs.check_libraries()
    known = store.belonging_to(known, wish, known.host if known else facts.metadata())
    for line in facts.warnings(wish.cores):
        click.echo(f"warning: {line}")
    finished = {one.key for one in store.done()}
    blocks = blocks_of(wish.cells, ARMS, wish.repetitions, wish.seed)
    _measure(wish, [block for block in blocks if block.key not in finished], store, records=records)
    publish(store, known)


def _measure(wish: Wish, missing: Sequence[Block[Cell]], store: Store[Wish], *, records: bool) -> None:
    """All of these blocks. Whatever ends it, the host is as before afterwards."""
    each_s = len(ARMS) * (wish.timing.total_s + 1)
    try:
        with interruptible(), site(blame=False, say=click.echo) as place:
            for number, block in enumerate(missing):
                left = minutes((len(missing) - number) * each_s)
                click.echo(f"{block.cell.name} repetition {block.repetition + 1}: {left} left")
                bench = place.bench(plan_of(wish, block), store.records(block) if records else None)
                store.add(block, [_run(bench, arm, block.repetition) for arm in block.arms])
    except Interrupted:
        raise Refusal(
            ExitStatus.FAILED,
            f"{EXPERIMENT}: interrupted: {store.folder} keeps what was finished: the same command goes on",
        ) from None


def _run(bench: Bench, arm: str, repetition: int) -> RunResult:
    for _ in range(ATTEMPTS):
        found = measure_one(bench, arm, repetition, lambda: None)
        if found.seconds >= LEAST_PART * bench.plan.timing.seconds:
            return found
    raise Refusal(
        ExitStatus.FAILED, f"{EXPERIMENT}: {arm}: the counters could not be read in time {ATTEMPTS} times"
    )


def main() -> None:
    """Run it."""
    enter(command, "run.py")
