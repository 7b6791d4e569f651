"""The table and the picture of the kept runs.

    python -m experiments.sched_ext

The runs themselves: python -m experiments.testbed run --kernel sched_ext (README.md).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

RESULTS = Path(__file__).resolve().parent / "results"
PLAIN, ARMS = "none", ("none-again", "oracle", "scx")
NAMES = {"none-again": "plain again", "oracle": "EEVDF's oracle", "scx": "`dasec scx`"}


class Seen(NamedTuple):
    """Of all VMs of a run: means of mean and p99 in ms, background CPU time, requests a second."""

    mean_ms: float
    p99_ms: float
    background_s: float
    requests: float


def cells() -> Iterator[tuple[str, Mapping[str, Seen]]]:
    """Every kept cell with its arms."""
    for file in sorted(RESULTS.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            block = json.loads(line)
            yield f"{file.stem}: {block['cell']}", {run["arm"]: seen(run) for run in block["runs"]}


def seen(run: Mapping[str, Any]) -> Seen:
    """One run."""
    vms = run["tenants"]
    return Seen(
        statistics.mean(vm["latencies"]["mean_ns"] for vm in vms) / 1e6,
        statistics.mean(vm["latencies"]["percentiles_ns"]["p99"] for vm in vms) / 1e6,
        sum(vm["background_cpu_s"] or 0 for vm in vms),
        sum(vm["throughput_per_s"] for vm in vms),
    )


def table() -> Iterator[str]:
    """Ratios to the plain kernel, mean / p99."""
    yield "| cell | plain: mean, p99 ms | " + " | ".join(NAMES.values()) + " | background, requests done |"
    yield "|---" * (3 + len(ARMS)) + "|"
    for name, runs in cells():
        plain, ours = runs[PLAIN], runs["scx"]
        ratios = [
            f"{run.mean_ms / plain.mean_ms:.2f} / {run.p99_ms / plain.p99_ms:.2f}" if run else "–"
            for run in map(runs.get, ARMS)
        ]
        background = f"{ours.background_s / plain.background_s:.2f}" if plain.background_s else "–"
        done = f"{background}, {ours.requests / plain.requests:.2f}"
        yield f"| {name} | {plain.mean_ms:.2f}, {plain.p99_ms:.1f} | {' | '.join(ratios)} | {done} |"


def draw(path: Path) -> None:
    """A group of bars for each cell: the arms' p99 over the plain kernel's."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = list(cells())
    figure, axis = pyplot.subplots(figsize=(10, 5), dpi=110, layout="constrained")
    for number, (arm, colour) in enumerate(zip(ARMS, ("#999999", "#0072B2", "#D55E00"), strict=True)):
        there = [(row, runs) for row, (_, runs) in enumerate(found) if arm in runs]
        axis.bar(
            [row + (number - 1) * 0.27 for row, _ in there],
            [runs[arm].p99_ms / runs[PLAIN].p99_ms for _, runs in there],
            0.25,
            label=NAMES[arm].strip("`"),
            color=colour,
        )
    axis.axhline(1, color="#000000", linewidth=0.8)
    names = [name.removesuffix("-vm").replace(": ", "\n") for name, _ in found]
    axis.set_xticks(range(len(found)), names, fontsize=7, rotation=30, ha="right")
    axis.set_ylabel("p99 over the plain kernel's")
    figure.legend(loc="outside upper center", ncols=len(ARMS))
    figure.savefig(path)


@click.command()
def command() -> None:
    """Print the table of the kept runs, and draw their picture."""
    click.echo("\n".join(table()))
    draw(RESULTS / "p99.png")


if __name__ == "__main__":
    command()
