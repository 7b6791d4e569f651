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
    """p99 of each arm, every run a point, over the CPUs that all others had."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.2), dpi=110, layout="constrained")
    axes = figure.subplots()
    for number, arm in enumerate(ARMS):
        others = [
            a + b
            for a, b in zip(
                values(runs, arm, "background_cpus"), values(runs, arm, "batch_cpus"), strict=True
            )
        ]
        axes.scatter(others, values(runs, arm, P99), s=22, color=f"C{number}", label=arm)
    axes.set_yscale("log")
    axes.set_xlabel("CPUs of all background, of the service's own container and of the others")
    axes.set_ylabel("p99 of the service, ms")
    figure.legend(loc="outside right upper")
    figure.savefig(path)


def publish() -> None:
    """Print and draw them."""
    runs = kept()
    click.echo(table(runs))
    draw(runs, PICTURE)
