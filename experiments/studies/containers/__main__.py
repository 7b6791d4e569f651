"""Real Docker containers on this host: plain, `critical`, reservations, a limit with caps.

    python -m experiments.studies.containers --out results/containers

As root, on a quiet host, with nginx and `docker`. After `python -m guests.engines` a Docker of Debian's is
unpacked, runs in namespaces of its own, and leaves nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import schedule

from ...drivers.nginx import Nginx
from ...places.docker import missing_docker, unloaded_image
from ...run.entry import enter
from .arms import ARMS
from .measured import run

RUNS = "runs.jsonl"


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--repetitions", type=click.IntRange(min=1), default=6, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0.5), default=5.0, show_default=True)
@click.option("--warmup", "warmup_s", type=click.FloatRange(min=0), default=1.5, show_default=True)
@click.option("--arm", "arms", type=click.Choice(list(ARMS)), multiple=True, help="Only this one.")
def command(out: Path, repetitions: int, seconds: float, warmup_s: float, arms: tuple[str, ...]) -> None:
    """Measure, arms interleaved; each run is a line of OUT/runs.jsonl."""
    if (out / RUNS).exists():
        raise Refusal(ExitStatus.USAGE, f"--out: {out} holds results: name another folder")
    if (why := Nginx().missing() or missing_docker() or unloaded_image()) is not None:
        raise Refusal(ExitStatus.HOST, why)
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dasec-containers-")))
        orders = schedule(arms or tuple(ARMS), repetitions, 1)
        runs = [(number, arm) for number, order in enumerate(orders) for arm in order]
        progress = stack.enter_context(click.progressbar(runs, file=sys.stderr, label="runs"))
        kept = stack.enter_context((out / RUNS).open("w", encoding="utf-8"))
        for number, arm in progress:
            found = run(arm, number, warmup_s, seconds, scratch / f"{number}-{arm.replace(' ', '-')}")
            kept.write(json.dumps(asdict(found)) + "\n")
            kept.flush()


if __name__ == "__main__":
    enter(command, "experiments.studies.containers")
