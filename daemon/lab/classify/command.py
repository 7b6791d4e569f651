"""`dasec classify`: arguments and output."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from statistics import median

import click
from rich.console import Console
from rich.progress import Progress

from ...config.amount import Amount
from ...errors import ExitStatus, Refusal
from ...linux.cpus import cores_of, isolated
from ...linux.printable import printable
from ...reservations.grants import CpuClass
from ...reservations.take import CpuPlace
from ..kit.errors import ended_by_signals, said_by
from ..kit.ratios import FEWEST
from .trial import Attempt, tried

PAIRS = 8
"""With eight pairs the interval covers the truth 96 times in 100 (kit/ratios.py)."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False})
@click.option(
    "--cpus",
    "amounts",
    multiple=True,
    required=True,
    type=Amount(min=0.01, max=8192),
    help="How many CPUs it may use; may be given more than once.",
)
@click.option(
    "--pairs",
    type=click.IntRange(FEWEST, 1000),
    default=PAIRS,
    show_default=True,
    help="Runs of each, twice.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def classify(amounts: tuple[float, ...], pairs: int, as_json: bool, command: tuple[str, ...]) -> None:
    """Try whether a program wants CPUs of its own: runs COMMAND under a CPU limit, with all CPUs in sight and
    with only as many as it may use, in turn.

    COMMAND shall do the same work each time and exit with 0; its output is dropped. Needs root.
    """
    if shutil.which(command[0]) is None:
        raise Refusal(
            ExitStatus.USAGE,
            f"classify: {command[0]}: is no program that can be run: give a path, or a name that PATH has",
        )
    unbalanced = isolated()
    places = {cpu: CpuPlace(*place) for cpu, place in cores_of().items() if cpu not in unbalanced}
    for amount in amounts:
        if math.ceil(amount) >= len(places):
            raise Refusal(
                ExitStatus.USAGE, f"--cpus {amount:g}: is all that there is: give {len(places) - 1} or less"
            )
    console = Console(stderr=True)
    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with said_by("classify"), ended_by_signals(), shown as bar:
        task = bar.add_task("runs", total=2 * pairs * len(amounts))
        trials = list(tried(command, amounts, pairs, places, lambda: bar.advance(task)))
    click.echo(_as_json(trials) if as_json else "\n".join(map(printable, _lines(trials, len(places)))))


def class_of(trials: Sequence[Attempt]) -> CpuClass:
    """Exclusive, if with fewer CPUs in sight it is faster in most trials (section IV-C)."""
    better = sum(trial.prefers_cpuset for trial in trials)
    return CpuClass.EXCLUSIVE if 2 * better > len(trials) else CpuClass.SHARED


def _lines(trials: Sequence[Attempt], online: int) -> Iterator[str]:
    yield f"{'CPUs':>6} {f'{online} in sight':>14} {'only its own':>14}   slower with all in sight"
    for trial in trials:
        gain = trial.gain
        yield (
            f"{trial.cpus:>6g} {median(trial.quota_s):>12.3f} s {median(trial.cpuset_s):>12.3f} s"
            f"   {gain.ratio:.2f} [{gain.low:.2f}, {gain.high:.2f}]"
        )
    if class_of(trials) is CpuClass.EXCLUSIVE:
        yield 'exclusive: it is faster where it sees only CPUs that it may use: cpu = "exclusive" (class C1)'
    else:
        yield 'shared: CPUs of its own do not make it faster: cpu = "shared" (class C2)'


def _as_json(trials: Sequence[Attempt]) -> str:
    rows = [
        {"cpus": each.cpus, "quota_s": each.quota_s, "cpuset_s": each.cpuset_s, "ratio": each.gain.ratio}
        | {"low": each.gain.low, "high": each.gain.high}
        for each in trials
    ]
    return json.dumps({"class": class_of(trials), "trials": rows}, indent=2)
