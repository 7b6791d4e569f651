"""The table and the picture of the kept runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dasec.lab.demo.plot import COLOURS, DASHES
from dasec.lab.kit.arms import NONE
from dasec.lab.kit.ratios import Estimate

from ...plan.cells import Cell
from ...plan.testbed import Shapes
from ...results.analysis import JUDGED, Summary, summarise
from ...results.markdown import markdown_table
from ...results.store import Done, Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).resolve().parent
PICTURE = "fig13.png"
ARMS = {"dasec:tsa": "tsa", "dasec:rla": "rla", "dasec:rcr": "rcr", "dasec": "all", "critical": "critical"}
"""By their names in table and picture."""


@dataclass(frozen=True, slots=True)
class AtRatio:
    """What was measured at one ratio."""

    summary: Summary[Cell]
    blocks: tuple[Done, ...]

    @property
    def ratio(self) -> float:
        """vCPUs a core."""
        return self.summary.cell.ratio

    @property
    def busy(self) -> float:
        """By what the services used: the CPU that measures does not count."""
        used = [sum(tenant.cores for tenant in one.of(NONE).tenants) for one in self.blocks]
        return sum(used) / len(used) / self.summary.cell.scenario.cores

    def plain_ms(self, metric: str) -> float:
        """The plain kernel's latency, the mean of all services and repetitions."""
        values = [tenant.value(metric) for one in self.blocks for tenant in one.of(NONE).tenants]
        return sum(values) / len(values) / 1e6

    def of(self, arm: str, metric: str) -> Estimate:
        """Over the plain kernel's."""
        return self.summary.arms[arm].ratios[metric]


def kept() -> tuple[AtRatio, ...]:
    """All that is kept, by ratio."""
    store = Store(FOLDER / "results", Shapes)
    asked, done = store.kept(), store.done()
    found = []
    for cell in asked.wish.cells.possible:
        summary = summarise(cell, done, asked.wish.arms)
        assert summary is not None
        found.append(AtRatio(summary, tuple(one for one in done if one.cell == cell.name)))
    return tuple(found)


def table(found: Sequence[AtRatio]) -> str:
    """The plain kernel's latencies, each arm's ratios and their verdict."""
    head = ["ratio", "busy", "`none` mean / p99 ms", "A/A worst", *(f"`{name}`" for name in ARMS.values())]
    rows = [
        [
            f"{one.ratio:g}",
            f"{one.busy:.2f}",
            " / ".join(f"{one.plain_ms(metric):.2f}" for metric in JUDGED),
            " / ".join(f"{one.summary.spread[metric]:.2f}" for metric in JUDGED),
            *(_told(one, arm) for arm in ARMS),
        ]
        for one in found
    ]
    return markdown_table(head, rows)


def _told(one: AtRatio, arm: str) -> str:
    each = [one.of(arm, metric) for metric in JUDGED]
    ratios = " / ".join(f"{of.ratio:.2f} ({of.low:.2f}–{of.high:.2f})" for of in each)
    return f"{ratios} {one.summary.arms[arm].verdict}"


def draw(found: Sequence[AtRatio], folder: Path) -> None:
    """A panel for the mean and one for p99, the ratio along each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(JUDGED))
    figure.suptitle("Latency over that of the same kernel without a daemon; below 1 is better", fontsize=11)
    for axes, metric in zip(panels, JUDGED, strict=True):
        _draw_metric(axes, found, metric)
    figure.savefig(folder / PICTURE, format="png")


def _draw_metric(axes: Axes, found: Sequence[AtRatio], metric: str) -> None:
    for one in found:
        spread = one.summary.spread[metric]
        axes.fill_between([one.ratio - 0.4, one.ratio + 0.4], 1 / spread, spread, color="0.92")
    axes.axhline(1, color="0.5", linewidth=0.8)
    for index, (arm, name) in enumerate(ARMS.items()):
        shown = [one.of(arm, metric) for one in found]
        axes.errorbar(
            [one.ratio + 0.1 * (index - (len(ARMS) - 1) / 2) for one in found],
            [of.ratio for of in shown],
            yerr=[[of.ratio - of.low for of in shown], [of.high - of.ratio for of in shown]],
            color=COLOURS[index + 2],
            linestyle=DASHES[index],
            marker="o",
            markersize=4,
            capsize=3,
            linewidth=1.2,
            label=name,
        )
    axes.set(
        yscale="log", xlabel="consolidation ratio (vCPUs per core)", ylabel=f"{metric} latency, arm / none"
    )
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_xticks([one.ratio for one in found])
    axes.set_title(f"{metric}: geometric mean, 95 % CI; grey: worst A/A repetition", fontsize=10)
    axes.grid(visible=True, axis="y", color="0.9")
    axes.legend(fontsize=8)


def publish() -> None:
    """Print and draw them."""
    found = kept()
    click.echo(table(found))
    draw(found, FOLDER)
