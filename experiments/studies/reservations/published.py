"""The tables and the picture of the kept runs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from ...results.markdown import markdown_table

RESULTS = Path(__file__).resolve().parent / "results"
PICTURE = RESULTS / "figure.png"
QUESTION = ("open",)
"""The files whose cells ask what each arm gives a service and costs who is beside it."""

FIGURES = ("example", "vertical")
"""The files that are about rKube's figures."""

OTHERS = ("batch", "neighbour")
"""Whoever is beside the services, or the target."""

ARMS = {
    "none": "plain",
    "none-again": "plain again",
    "critical": "`critical`",
    "critical+caps": "`critical` with caps",
    "strict": "strict (rKube)",
    "strict:critical": "strict, `critical` within",
    "wysiwyg": "WYSIWYG",
    "scx": "`dasec scx`",
}
COLOURS = ("#999999", "#cccccc", "#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#CC79A7", "#009E73")


class Seen(NamedTuple):
    """One run. Of the services, or the target: means of mean and p99 in ms, requests a second, CPUs, and of
    these what background of their own had. CPUs of whoever is beside them."""

    mean_ms: float
    p99_ms: float
    requests: float
    target_cores: float
    background_cores: float
    other_cores: float

    @property
    def cores(self) -> float:
        """Of all workloads."""
        return self.target_cores + self.other_cores


def seen(run: Mapping[str, Any]) -> Seen:
    """As it was kept."""
    others = [one for one in run["tenants"] if one["name"].startswith(OTHERS)]
    targets = [one for one in run["tenants"] if one not in others]
    served = [one["latencies"] for one in targets if one["latencies"]["count"]]
    return Seen(
        statistics.mean(each["mean_ns"] for each in served) / 1e6 if served else 0.0,
        statistics.mean(each["percentiles_ns"]["p99"] for each in served) / 1e6 if served else 0.0,
        sum(one["throughput_per_s"] for one in targets),
        sum(one["cores"] for one in targets),
        sum(one["background_cores"] for one in targets),
        sum(one["cores"] for one in others),
    )


def kept(*names: str) -> Mapping[str, Mapping[str, Seen]]:
    """Every kept host of these files, by its name, with its arms; of several repetitions the first."""
    found: dict[str, Mapping[str, Seen]] = {}
    for name in names:
        for line in (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            block = json.loads(line)
            host = block["cell"].rsplit("-", 3)[0]  # ratio, part that is requested, layout
            found.setdefault(host, {run["arm"]: seen(run) for run in block["runs"]})
    return found


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


def figures() -> str:
    """A row for each arm of each host that is about one of rKube's figures."""
    head = ("host", "arm", "CPUs of the target", "p99 ms", "CPUs of the neighbour", "CPUs in use")
    rows = (
        (
            host,
            name,
            f"{runs[arm].target_cores:.2f}",
            f"{runs[arm].p99_ms:.1f}" if runs[arm].p99_ms else "–",
            f"{runs[arm].other_cores:.2f}",
            f"{runs[arm].cores:.2f}",
        )
        for host, runs in kept(*FIGURES).items()
        for arm, name in ARMS.items()
        if arm in runs
    )
    return markdown_table(head, rows)


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
    click.echo(f"{question()}\n\n{figures()}")
    draw(PICTURE)
