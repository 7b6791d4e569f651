"""The experiment as a command."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from dasec.demo import facts, needs
from dasec.demo.errors import Interrupted
from dasec.demo.layout import Layout
from dasec.demo.results import RunResult
from dasec.demo.run import Bench, measure_one
from dasec.demo.scenario import Timing
from dasec.demo.signals import interruptible
from dasec.exits import ExitStatus, Refusal
from experiments.loads.entry import enter
from experiments.loads.runner import minutes, site

from .analysis import summarise
from .plots import draw
from .report import report
from .scenarios import CONTESTS
from .wish import ARMS, Wish, add, blocks_of, plan_of, read

RUNS = "runs.jsonl"
WARMUP_S, LEAD_S = 1.0, 0.6
ATTEMPTS, LEAST_PART = 5, 0.8
"""Whoever wakes often starves what runs beside it on this kernel, the process that reads the counters too
(README.md): a run that was watched for less than this part of its time is made again."""

"""The policy first acts in its fourth period and remembers half a second."""


def _names(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = known if text == "all" else tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(known):
        raise Refusal(
            ExitStatus.USAGE, f"fairness: --{option}: {text}: give all, or some of {', '.join(known)}"
        )
    return names


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--contests", default="all", help=f"Of {', '.join(CONTESTS)}.")
@click.option("--layouts", default="flat,vm", help="flat (vCPUs side by side), vm (a group a workload).")
@click.option("--repetitions", type=click.IntRange(1, 1000), default=6)
@click.option("--seconds", type=click.FloatRange(0.5, 3600), default=4.0, help="Measured part of a run.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Else a fresh one.")
@click.option("--records", is_flag=True, help="Keep the daemon's record of every run.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("results/fairness"))
@click.option("--report", "report_only", is_flag=True, help="Only the report of what --out holds.")
def command(out: Path, report_only: bool, **options: object) -> None:  # noqa: FBT001
    """What each of two workloads on saturated cores gets under `critical`, beside what it gets without.

    What is finished is kept: the same command with the same --out goes on after an interruption.
    """
    wish = Wish(
        _names("contests", str(options["contests"]), tuple(CONTESTS)),
        _names("layouts", str(options["layouts"]), tuple(map(str, Layout))),
        int(str(options["repetitions"])),
        Timing(float(str(options["seconds"])), WARMUP_S, LEAD_S),
        len(os.sched_getaffinity(0)),
        int(str(options["seed"])) if options["seed"] is not None else secrets.randbelow(2**31),
    )
    if not report_only:
        needs.check_root()
        needs.check_libraries()
        for line in facts.warnings(wish.cores):
            click.echo(f"warning: {line}")
        _measure(wish, out, records=bool(options["records"]))
    _write_report(out)


def _measure(wish: Wish, out: Path, *, records: bool) -> None:
    """All blocks that are not there yet. Whatever ends it, the host is as before afterwards."""
    file = out / RUNS
    have = {(one.block.contest, one.block.layout, one.block.repetition) for one in read(file)}
    missing = [one for one in blocks_of(wish) if (one.contest, one.layout, one.repetition) not in have]
    each_s = len(ARMS) * (wish.timing.total_s + 1)
    try:
        with interruptible(), site(blame=False, say=click.echo) as place:
            for number, block in enumerate(missing):
                left = minutes((len(missing) - number) * each_s)
                click.echo(f"{block.contest} {block.layout} repetition {block.repetition + 1}: {left} left")
                kept = out / "records" / f"{block.contest}-{block.layout}" if records else None
                if kept:
                    kept.mkdir(parents=True, exist_ok=True)
                bench = place.bench(plan_of(wish, block), kept)
                add(file, block, [_run(bench, arm, block.repetition) for arm in block.arms])
    except Interrupted:
        raise Refusal(
            ExitStatus.FAILED,
            f"fairness: interrupted: {out} keeps what was finished: the same command goes on",
        ) from None


def _run(bench: Bench, arm: str, repetition: int) -> RunResult:
    for _ in range(ATTEMPTS):
        found = measure_one(bench, arm, repetition, lambda: None)
        if found.seconds >= LEAST_PART * bench.plan.timing.seconds:
            return found
    raise Refusal(
        ExitStatus.FAILED, f"fairness: {arm}: the counters could not be read in time {ATTEMPTS} times"
    )


def _write_report(out: Path) -> None:
    done = read(out / RUNS)
    if not done:
        raise Refusal(ExitStatus.FAILED, f"fairness: {out}: no block is finished yet")
    found = summarise(done)
    page = out / "report.md"
    page.write_text(report(found, facts.metadata(), draw(found, out)), encoding="utf-8")
    click.echo(page.read_text(encoding="utf-8"))


def main() -> None:
    """Run it."""
    enter(command, "run.py")
