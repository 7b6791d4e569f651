"""The table and the picture of the kept runs: what each server gains, by regime and arm."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.ratios import Estimate, estimate, paired_ratios
from dasec.lab.kit.results import RunResult, TenantResult

from ...results.analysis import JUDGED
from ...results.effects import effect, percent
from ...results.markdown import markdown_table
from ...results.store import Done, done_in
from . import curve

RESULTS = Path(__file__).resolve().parent / "results"
PICTURE = RESULTS / "servers.png"
CURVES = RESULTS / "curve"
PATCHED = RESULTS / "patched"
"""On our patched 6.1."""
ARMS = {CONTROL: "plain again", "critical": "`critical`", "oracle": "oracle", "scx": "`dasec scx`"}
GAIN, NOTHING, HARM, TOO_FEW = "gain", "nothing", "harm", "too few"
COLOURS = {
    CONTROL: "#999999",
    "critical": "#0072B2",
    "oracle": "#009E73",
    "scx": "#D55E00",
    "dasec": "#CC79A7",
}

Arms = Mapping[str, str]
"""By their names in results those of people."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One server at one point, all of its repetitions."""

    file: str
    """The experiment's."""
    blocks: tuple[Done, ...]

    def runs(self, arm: str) -> tuple[RunResult, ...]:
        """Of this arm, by repetition; nothing if it was not there."""
        return tuple(run for one in self.blocks for run in one.runs if run.arm == arm)

    @property
    def busy(self) -> float:
        """Part of the CPUs that services used, on the plain kernel."""
        return statistics.mean(run.busy for run in self.runs(NONE))

    def plain_ms(self, metric: str) -> float:
        """The plain kernel's."""
        return self.ms(NONE, metric)

    def ms(self, arm: str, metric: str) -> float:
        """Of all VMs that serve."""
        values = [one.value(metric) for run in self.runs(arm) for one in serving(run)]
        return statistics.mean(values) / 1e6

    def ratio(self, arm: str, metric: str) -> Estimate:
        """Over the plain kernel: each VM beside itself, with the interval over VMs and repetitions."""
        pairs: list[float] = []
        for run, plain in zip(self.runs(arm), self.runs(NONE), strict=True):
            values = [one.value(metric) for one in serving(run)]
            pairs += paired_ratios(values, [one.value(metric) for one in serving(plain)])
        return estimate(pairs)

    def word(self, arm: str) -> str:
        """What both latencies say that leave the plain kernel's own difference from itself behind; nothing is
        said of so few VMs that there is no interval."""
        if math.isinf(self.ratio(arm, JUDGED[0]).high):
            return TOO_FEW
        words = {self._word(arm, metric) for metric in JUDGED}
        if HARM in words:
            return HARM
        return GAIN if GAIN in words else NOTHING

    def _word(self, arm: str, metric: str) -> str:
        found, control = self.ratio(arm, metric), self.ratio(CONTROL, metric)
        if found.high < min(1.0, control.low):
            return GAIN
        return HARM if found.low > max(1.0, control.high) else NOTHING

    def done(self, arm: str) -> tuple[float, float]:
        """Requests that were answered and CPU time that VMs used, over the plain kernel's."""
        requests, cores = self._sums(arm)
        plain_requests, plain_cores = self._sums(NONE)
        return requests / plain_requests, cores / plain_cores

    def failed(self, arm: str) -> int:
        """Requests that got an error, or were lost with their connection; they count as late."""
        return sum(one.errors for run in self.runs(arm) for one in run.tenants)

    def _sums(self, arm: str) -> tuple[float, float]:
        answered = math.fsum(one.throughput_per_s for run in self.runs(arm) for one in serving(run))
        return answered, math.fsum(one.cores for run in self.runs(arm) for one in run.tenants)

    def batch_done(self, arm: str) -> Estimate:
        """Batch work that was done, over the plain kernel's: each VM with it beside itself."""
        pairs: list[float] = []
        for run, plain in zip(self.runs(arm), self.runs(NONE), strict=True):
            values = [one.throughput_per_s for one in computing(run)]
            pairs += paired_ratios(values, [one.throughput_per_s for one in computing(plain)])
        return estimate(pairs)


def serving(run: RunResult) -> tuple[TenantResult, ...]:
    """VMs that were asked for something."""
    return tuple(one for one in run.tenants if one.latencies.count)


def computing(run: RunResult) -> tuple[TenantResult, ...]:
    """VMs with batch work."""
    return tuple(one for one in run.tenants if not one.latencies.count)


def cells(results: Path = RESULTS) -> Iterator[Cell]:
    """Every kept file with its finished blocks."""
    for file in sorted(results.glob("*.jsonl")):
        lines = file.read_text(encoding="utf-8").splitlines()
        yield Cell(file.stem, done_in(lines))


def table(found: tuple[Cell, ...], arms: Arms = ARMS) -> str:
    """A row for each cell: how busy it was, how long requests took, and the arms over that."""
    head = ["server", "busy", "plain: mean, p99 ms", *arms.values()]
    return markdown_table(head, [list(_row(one, arms)) for one in found])


def _row(one: Cell, arms: Arms) -> Iterator[str]:
    yield one.file
    yield percent(one.busy)
    yield f"{one.plain_ms('mean'):.2f}, {one.plain_ms('p99'):.1f}"
    for arm in arms:
        yield over_plain(one, arm)


def over_plain(one: Cell, arm: str) -> str:
    """Mean and p99 over the plain kernel's."""
    return " / ".join(effect(one.ratio(arm, metric)) for metric in JUDGED) if one.runs(arm) else "–"


def words(found: tuple[Cell, ...], arms: Arms = ARMS) -> str:
    """What each arm is worth in each cell; requests answered and CPU time used, over the plain kernel's."""
    judged = [arm for arm in arms if arm != CONTROL]
    head = ["server", *(arms[arm] for arm in judged)]
    return markdown_table(head, [[one.file, *(_worth(one, arm) for arm in judged)] for one in found])


def _worth(one: Cell, arm: str) -> str:
    if not one.runs(arm):
        return "–"
    requests, cores = one.done(arm)
    failed, plain_failed = one.failed(arm), one.failed(NONE)
    lost = f"; failed: {failed}, plain {plain_failed}" if failed or plain_failed else ""
    return f"{one.word(arm)}; {requests:.2f}, {cores:.2f}{lost}"


def batch(found: tuple[Cell, ...]) -> str:
    """How much of the batch work beside was done under each arm, over the plain kernel's."""
    head = ["server", *ARMS.values()]
    rows = [
        [one.file, *(effect(one.batch_done(arm)) if one.runs(arm) else "–" for arm in ARMS)] for one in found
    ]
    return markdown_table(head, rows)


def draw(found: tuple[Cell, ...], path: Path, arms: Arms = ARMS) -> None:
    """Mean and p99 of each arm over the plain kernel, with the interval over VMs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), dpi=110, layout="constrained")
    tried = [arm for arm in arms if any(one.runs(arm) for one in found)]
    axes, bar = figure.subplots(1, 2, sharey=True), 0.8 / len(tried)
    for axis, metric in zip(axes, JUDGED, strict=True):
        for number, arm in enumerate(tried):
            there = [(row, one.ratio(arm, metric)) for row, one in enumerate(found) if one.runs(arm)]
            places = [row + (number - (len(tried) - 1) / 2) * bar for row, _ in there]
            low = [one.ratio - one.low for _, one in there]
            high = [one.high - one.ratio for _, one in there]
            axis.bar(
                places,
                [one.ratio for _, one in there],
                bar * 0.9,
                yerr=(low, high),
                label=arms[arm].strip("`"),
                color=COLOURS[arm],
                error_kw={"elinewidth": 0.8},
            )
        axis.axhline(1, color="#000000", linewidth=0.8)
        axis.set_xticks(range(len(found)), [one.file for one in found], fontsize=8, rotation=45, ha="right")
        axis.set_title(f"{metric} over the plain kernel's")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(tried))
    figure.savefig(path)


def publish() -> None:
    """Print and draw them."""
    from . import sixteen  # which takes cells from here

    found, hosts_of_sixteen = tuple(cells()), tuple(sixteen.hosts())
    full = tuple(host.full for host in hosts_of_sixteen)
    patched = tuple(cells(PATCHED))
    click.echo(sixteen.table(hosts_of_sixteen))
    click.echo(sixteen.alone(hosts_of_sixteen))
    click.echo(sixteen.late(hosts_of_sixteen))
    click.echo(sixteen.table(tuple(sixteen.hosts(sixteen.PRESENT))))
    for some, picture in (
        (found, PICTURE),
        (full, sixteen.FOLDER / "sixteen.png"),
        (patched, PATCHED / "patched.png"),
    ):
        click.echo(table(some))
        click.echo(words(some))
        draw(some, picture)
    hosts = curves()
    for host in hosts.values():
        click.echo(curve.table(host))
    click.echo(curve.held(hosts))
    curve.draw(hosts, CURVES / "curve.png")


def curves() -> dict[str, tuple[curve.Point, ...]]:
    """By server."""
    return {file.removesuffix("-curve"): curve.points(CURVES / f"{file}.jsonl") for file in curve.FILES}
