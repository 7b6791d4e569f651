"""The tables and the pictures of the kept runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from ...results.markdown import markdown_table
from . import machines, rkube
from .runs import ARMS, RESULTS, Seen, kept

PICTURE = RESULTS / "figure.png"
QUESTION = ("open", "limits")
"""The files whose cells ask what each arm gives a service and costs who is beside it."""

COLOURS = ("#999999", "#cccccc", "#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#CC79A7", "#009E73")


def question() -> str:
    """A row for each arm of each host."""
    head = (
        "host",
        "arm",
        "mean ms",
        "p99 ms",
        "p99 over plain",
        "requests done",
        "CPUs of their background",
        "CPUs of batch",
        "CPUs in use",
    )
    return markdown_table(head, _rows(kept(*QUESTION)))


def _rows(hosts: Mapping[str, Mapping[str, Seen]]) -> Iterator[Sequence[str]]:
    for host, runs in sorted(hosts.items()):
        plain = runs["none"]
        for arm, name in ARMS.items():
            if (run := runs.get(arm)) is not None:
                yield (
                    host,
                    name,
                    f"{run.mean_ms:.2f}",
                    f"{run.p99_ms:.1f}",
                    f"{run.p99_ms / plain.p99_ms:.2f}",
                    f"{run.requests / plain.requests:.2f}",
                    f"{run.background_cores:.2f}",
                    f"{run.other_cores:.2f}",
                    f"{run.cores:.2f}",
                )


def draw(path: Path) -> None:
    """p99 of the services over the CPUs of the batch work: a panel for each host, a point for each arm."""
    from matplotlib.figure import Figure

    hosts = sorted(kept(*QUESTION).items())
    figure = Figure(figsize=(3.4 * len(hosts), 4), dpi=110, layout="constrained")
    axes = figure.subplots(1, len(hosts))
    for axis, (host, runs) in zip(axes, hosts, strict=True):
        for (arm, name), colour in zip(ARMS.items(), COLOURS, strict=True):
            if arm in runs:
                axis.plot(
                    runs[arm].other_cores,
                    runs[arm].p99_ms,
                    "o",
                    color=colour,
                    label=name.replace("`", ""),
                )
        axis.set(title=host, xlabel="CPUs of the batch work", yscale="log")
    axes[0].set_ylabel("p99 of the services, ms")
    names = {
        label: each for axis in axes for each, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(names.values(), names.keys(), loc="outside upper center", ncols=4)
    figure.savefig(path)


def publish() -> None:
    """Print and draw them."""
    click.echo("\n\n".join((question(), rkube.table(), machines.table())))
    draw(PICTURE)
    rkube.draw(rkube.PICTURE)
    machines.draw(machines.PICTURE)
