"""From the runs to ratios, verdicts, a table and a picture, by the demo's own statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dasec.lab.demo.plot import COLOURS, DASHES
from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.results import ALL, Measured, RunResult, TenantResult
from dasec.lab.load_tool import Latencies

from .cells import ARMS, CORES, POLICIES, scenario_for
from .comparison import JUDGED, Comparison, compare, verdict_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Judged:
    """All that is known of one consolidation ratio."""

    ratio: int
    measured: Measured
    comparisons: tuple[Comparison, ...]

    def compared(self, arm: str, metric: str) -> Comparison:
        """One arm against the default, over all services."""
        (found,) = (
            one for one in self.comparisons if (one.arm, one.workload, one.metric) == (arm, ALL, metric)
        )
        return found

    def default_ms(self, metric: str) -> float:
        """The default's latency, the mean of all services and repetitions."""
        values = [
            value for name in self.measured.tenants for value in self.measured.values(NONE, name, metric)
        ]
        return sum(values) / len(values) / NS_PER_MS


def judge(ratio: int, runs: Sequence[Mapping[str, object]]) -> Judged:
    """Every arm of this ratio against the default of the same repetition."""
    results = tuple(_run(raw) for raw in runs)
    tenants = tuple(tenant.name for tenant in scenario_for(ratio).tenants)
    repetitions = len({run.repetition for run in results})
    measured = Measured(ARMS, tenants, repetitions, results)
    return Judged(ratio, measured, compare(measured))


def _run(raw: Mapping[str, object]) -> RunResult:
    fields = dict(raw)
    tenants = fields.pop("tenants")
    assert isinstance(tenants, list)
    return RunResult(tenants=tuple(map(_tenant, tenants)), **fields)  # type: ignore[arg-type]


def _tenant(raw: Mapping[str, object]) -> TenantResult:
    fields = dict(raw)
    latencies = fields.pop("latencies")
    assert isinstance(latencies, dict)
    return TenantResult(latencies=Latencies(**latencies), **fields)  # type: ignore[arg-type]


def table(judged: Sequence[Judged]) -> str:
    """In Markdown: the default's latencies, each arm's ratios and their verdict."""
    lines = [
        "| ratio | busy | `none` mean / p99 ms | A/A worst | "
        + " | ".join(f"`{arm}`" for arm in POLICIES)
        + " |",
        "|---" * (4 + len(POLICIES)) + "|",
    ]
    for one in judged:
        busy = [sum(tenant.cores for tenant in run.tenants) / CORES for run in one.measured.of(NONE)]
        spread = " / ".join(f"{one.compared(CONTROL, metric).control_spread:.2f}" for metric in JUDGED)
        default = " / ".join(f"{one.default_ms(metric):.2f}" for metric in JUDGED)
        arms = " | ".join(_cell(one, arm) for arm in POLICIES)
        lines.append(f"| {one.ratio} | {sum(busy) / len(busy):.2f} | {default} | {spread} | {arms} |")
    return "\n".join(lines)


def _cell(one: Judged, arm: str) -> str:
    words = []
    for metric in JUDGED:
        effect = one.compared(arm, metric).estimate
        words.append(f"{effect.ratio:.2f} ({effect.low:.2f}–{effect.high:.2f})")
    return f"{' / '.join(words)} {verdict_on(arm, one.comparisons)}"


def draw(judged: Sequence[Judged], path: Path) -> None:
    """Write the PNG: a panel for the mean and one for p99, the consolidation ratio along each."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(JUDGED), figsize=(11, 4.6), dpi=110, layout="constrained")
    figure.suptitle("Latency over that of the same kernel without a daemon; below 1 is better", fontsize=11)
    for axes, metric in zip(panels, JUDGED, strict=True):
        _draw_metric(axes, judged, metric)
    figure.savefig(path, format="png")
    pyplot.close(figure)


def _draw_metric(axes: Axes, judged: Sequence[Judged], metric: str) -> None:
    for one in judged:
        spread = one.compared(CONTROL, metric).control_spread
        axes.fill_between([one.ratio - 0.4, one.ratio + 0.4], 1 / spread, spread, color="0.92")
    axes.axhline(1, color="0.5", linewidth=0.8)
    for index, arm in enumerate(POLICIES):
        shown = [one.compared(arm, metric).estimate for one in judged]
        axes.errorbar(
            [one.ratio + 0.1 * (index - (len(POLICIES) - 1) / 2) for one in judged],
            [effect.ratio for effect in shown],
            yerr=[
                [effect.ratio - effect.low for effect in shown],
                [effect.high - effect.ratio for effect in shown],
            ],
            color=COLOURS[index + 2],
            linestyle=DASHES[index],
            marker="o",
            markersize=4,
            capsize=3,
            linewidth=1.2,
            label=arm,
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_xticks([one.ratio for one in judged])
    axes.set_xlabel("consolidation ratio (vCPUs per core)")
    axes.set_ylabel(f"{metric} latency, arm / none")
    axes.set_title(f"{metric}: geometric mean, 95 % CI; grey: worst A/A repetition", fontsize=10)
    axes.grid(visible=True, axis="y", color="0.9")
    axes.legend(fontsize=8)
