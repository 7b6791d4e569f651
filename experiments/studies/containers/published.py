"""The table and the picture of the kept runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import click

from dasec.lab.kit.ratios import Estimate, paired_ratios, robust

from ...results.effects import effect
from ...results.markdown import markdown_table
from .arms import ARMS, PLAIN
from .measured import Seen

RESULTS = Path(__file__).resolve().parent / "results"
PICTURE = RESULTS / "containers.png"
MEAN, P99 = "mean_ms", "p99_ms"


def kept(file: Path = RESULTS / "runs.jsonl") -> tuple[Seen, ...]:
    """A run a line."""
    return tuple(Seen(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines())


def values(runs: tuple[Seen, ...], arm: str, of: str) -> list[float]:
    """Of one arm, by repetition."""
    mine = sorted((one for one in runs if one.arm == arm), key=lambda one: one.repetition)
    return [float(getattr(one, of)) for one in mine]


def ratio(runs: tuple[Seen, ...], arm: str, of: str, over: str = PLAIN) -> Estimate:
    """Of paired repetitions."""
    return robust(paired_ratios(values(runs, arm, of), values(runs, over, of)))


def table(runs: tuple[Seen, ...]) -> str:
    """A row for each arm: medians, the ratios over plain, and what it costs whoever is beside."""
    head = ["arm", "mean, p99 ms", "mean over plain", "p99 over plain", "its background", "others"]
    return markdown_table(head, [list(_row(runs, arm)) for arm in ARMS])


def _row(runs: tuple[Seen, ...], arm: str) -> Iterator[str]:
    yield arm
    yield ", ".join(f"{median(values(runs, arm, of)):.1f}" for of in (MEAN, P99))
    yield from (effect(ratio(runs, arm, of)) if arm != PLAIN else "1" for of in (MEAN, P99))
    yield from (f"{median(values(runs, arm, of)):.2f}" for of in ("background_cpus", "batch_cpus"))


def draw(runs: tuple[Seen, ...], path: Path) -> None:
    """A line for each arm: p99 of every run, and beside it the CPUs that all background had."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    figure = Figure(figsize=(9, 3.6), dpi=110, layout="constrained")
    latency, background = figure.subplots(1, 2, sharey=True)
    for row, arm in enumerate(ARMS):
        had = (values(runs, arm, of) for of in ("background_cpus", "batch_cpus"))
        cpus = [own + others for own, others in zip(*had, strict=True)]
        for axis, found in ((latency, values(runs, arm, P99)), (background, cpus)):
            axis.plot(found, [row] * len(found), "o", color="#0072B2", alpha=0.5)
            axis.plot([median(found)], [row], "|", color="#000000", markersize=16)
    latency.set_yticks(range(len(ARMS)), list(ARMS))
    latency.invert_yaxis()
    latency.set(xscale="log", xlabel="p99 of the service, ms", xticks=(10, 20, 30, 40, 50))
    latency.xaxis.set_major_formatter(ScalarFormatter())
    latency.minorticks_off()
    background.set(xlabel="CPUs of all background", xlim=(0, 2))
    for axis in (latency, background):
        axis.grid(axis="x", alpha=0.3)
    figure.savefig(path)


def publish() -> None:
    """Print and draw them."""
    runs = kept()
    click.echo(table(runs))
    draw(runs, PICTURE)
