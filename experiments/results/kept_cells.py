"""Kept runs of the testbed as a table and a picture: each cell's arms over one of them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click

from .markdown import markdown_table

COLOURS = ("#999999", "#0072B2", "#D55E00", "#009E73")


class Seen(NamedTuple):
    """Of all VMs of a run: means of mean and p99 in ms, and sums: the CPUs of background, requests, CPUs."""

    mean_ms: float
    p99_ms: float
    background_cores: float
    requests: float
    cores: float

    def over(self, base: Seen) -> str:
        """Its latencies over that one's: mean / p99."""
        return f"{self.mean_ms / base.mean_ms:.2f} / {self.p99_ms / base.p99_ms:.2f}"


@dataclass(frozen=True, slots=True)
class Kept:
    """Runs in `results`, a file for each experiment. `base`: the arm that the others are set over, in words;
    `arms` with their names in the table; `ours`: the one whose work done is set over `plain`'s."""

    results: Path
    base: str
    base_name: str
    arms: Mapping[str, str]
    ours: str
    plain: str

    def cells(self) -> Iterator[tuple[str, Mapping[str, Seen]]]:
        """Every kept cell with its arms, each the mean of its repetitions."""
        for name, runs in self.repeated():
            yield name, {arm: _mean(each) for arm, each in runs.items()}

    def repeated(self) -> Iterator[tuple[str, Mapping[str, Sequence[Seen]]]]:
        """Every kept cell with its arms, of each all repetitions in their order."""
        for file in sorted(self.results.glob("*.jsonl")):
            found: dict[str, dict[str, list[Seen]]] = {}
            for block in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
                for run in block["runs"]:
                    found.setdefault(block["cell"], {}).setdefault(run["arm"], []).append(seen(run))
            yield from ((f"{file.stem}: {cell}", runs) for cell, runs in found.items())

    def table(self) -> str:
        """Ratios to the base, mean / p99."""
        head = ["cell", f"{self.base_name}: mean, p99 ms", *self.arms.values(), "background, requests done"]
        return markdown_table(head, [self._row(name, runs) for name, runs in self.cells()])

    def _row(self, name: str, runs: Mapping[str, Seen]) -> list[str]:
        base, plain, ours = runs[self.base], runs[self.plain], runs[self.ours]
        ratios = [run.over(base) if run else "–" for run in map(runs.get, self.arms)]
        whole = plain.background_cores
        background = f"{ours.background_cores / whole:.2f}" if whole else "–"
        done = f"{background}, {ours.requests / plain.requests:.2f}"
        return [name, f"{base.mean_ms:.2f}, {base.p99_ms:.1f}", *ratios, done]

    def publish(self, *beside: Kept) -> None:
        """Print its table and theirs; draw this one's picture beside the runs."""
        click.echo("\n\n".join(kept.table() for kept in (self, *beside)))
        self.draw(self.results / "p99.png")

    def draw(self, path: Path) -> None:
        """A group of bars for each cell: the arms' p99 over the base's."""
        from matplotlib.figure import Figure

        found = list(self.cells())
        figure = Figure(figsize=(10, 5), dpi=110, layout="constrained")
        axis = figure.subplots()
        width = 0.8 / len(self.arms)
        for number, arm in enumerate(self.arms):
            there = [(row, runs) for row, (_, runs) in enumerate(found) if arm in runs]
            axis.bar(
                [row + (number - (len(self.arms) - 1) / 2) * width for row, _ in there],
                [runs[arm].p99_ms / runs[self.base].p99_ms for _, runs in there],
                0.93 * width,
                label=self.arms[arm].strip("`"),
                color=COLOURS[number],
            )
        axis.axhline(1, color="#000000", linewidth=0.8)
        names = [name.removesuffix("-vm").replace(": ", "\n") for name, _ in found]
        axis.set_xticks(range(len(found)), names, fontsize=7, rotation=30, ha="right")
        axis.set_ylabel(f"p99 over {self.base_name}'s")
        figure.legend(loc="outside upper center", ncols=len(self.arms))
        figure.savefig(path)


def _mean(runs: Sequence[Seen]) -> Seen:
    """Of latencies the geometric one, as ratios have it."""
    mean_ms, p99_ms, *work = zip(*runs, strict=True)
    return Seen(
        statistics.geometric_mean(mean_ms), statistics.geometric_mean(p99_ms), *map(statistics.mean, work)
    )


def seen(run: Mapping[str, Any]) -> Seen:
    """One run."""
    vms = run["tenants"]
    return Seen(
        statistics.mean(vm["latencies"]["mean_ns"] for vm in vms) / 1e6,
        statistics.mean(vm["latencies"]["percentiles_ns"]["p99"] for vm in vms) / 1e6,
        sum(vm["background_cores"] for vm in vms),
        sum(vm["throughput_per_s"] for vm in vms),
        sum(vm["cores"] for vm in vms),
    )
