"""The pictures of docs/findings.md from results/: python -m experiments.testbed.findings"""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

from pydantic import TypeAdapter

from dasec.demo.arms import CONTROL, NONE
from dasec.demo.results import RunResult

from ..suite.store import Done

HERE = Path(__file__).resolve().parent
RESULTS, DOCS = HERE / "results", HERE.parents[1] / "docs"
METRICS = ("mean", "p99")
COLOURS = ("#4477aa", "#cc6677")
WIDTH = 0.38

_DONE = TypeAdapter(Done)


def blocks(name: str) -> tuple[Done, ...]:
    """The raw runs of one experiment, as they were measured."""
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(map(_DONE.validate_json, lines))


def latency_ms(run: RunResult, metric: str) -> float:
    """The mean over its workloads."""
    each = [tenant.latencies for tenant in run.tenants]
    return (
        statistics.fmean(one.mean_ns if metric == "mean" else one.percentiles_ns[metric] for one in each)
        / 1e6
    )


def by_cause() -> dict[tuple[str, str], dict[str, list[float]]]:
    """Latencies of the plain kernel by cause and ratio, A and A again, for each metric."""
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in blocks("causes"):
        load, ratio, *_ = block.cell.rsplit("-", 3)
        for run in sorted(block.runs, key=lambda run: (NONE, CONTROL).index(run.arm)):
            for metric in METRICS:
                found[load.rsplit("-", 1)[0], ratio.removeprefix("r")][metric].append(latency_ms(run, metric))
    return found


def over_none() -> dict[str, dict[str, list[float]]]:
    """Ratios of each arm to the plain kernel of the same repetition, for each metric."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in blocks("headline"):
        plain = next(run for run in block.runs if run.arm == NONE)
        for run in block.runs:
            for metric in METRICS:
                ratio = latency_ms(run, metric) / latency_ms(plain, metric)
                found[run.arm][metric].append(ratio)
    return found


def draw(folder: Path) -> None:
    """findings-causes.png and findings-headline.png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    causes = by_cause()
    names = list(dict.fromkeys(name for name, _ in sorted(causes)))
    ratios = sorted({ratio for _, ratio in causes})
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 3.8), dpi=110, layout="constrained", sharey=True)
    for axes, metric in zip(panels, METRICS, strict=True):
        for number, (ratio, colour) in enumerate(zip(ratios, COLOURS, strict=True)):
            for place, name in enumerate(names):
                values, at = causes[name, ratio][metric], place + (number - 0.5) * WIDTH
                axes.bar(
                    at, statistics.fmean(values), WIDTH, color=colour, label=f"ratio {ratio}" * (place == 0)
                )
                axes.plot([at] * len(values), values, "k.-", lw=1)
        axes.set(title=f"{metric} latency, plain kernel (points: A, and A again)", yscale="log", ylabel="ms")
        axes.set_xticks(range(len(names)), names, fontsize=8)
        axes.legend(fontsize=8)
    figure.savefig(folder / "findings-causes.png")
    pyplot.close(figure)

    found = over_none()
    arms = [CONTROL, "dasec", "critical", "oracle"]
    figure, axes = pyplot.subplots(figsize=(8, 3.6), dpi=110, layout="constrained")
    for number, (metric, colour) in enumerate(zip(METRICS, COLOURS, strict=True)):
        for place, arm in enumerate(arms):
            values, at = found[arm][metric], place + (number - 0.5) * WIDTH
            axes.bar(at, statistics.geometric_mean(values), WIDTH, color=colour, label=metric * (place == 0))
            axes.plot([at] * len(values), values, "k.-", lw=1)
    axes.axhline(1, color="0.3", lw=1)
    axes.set(
        title="Ratio 9, 16 CPUs, EEVDF, a group a workload (points: repetitions)", ylabel="latency over none"
    )
    axes.set_xticks(range(len(arms)), arms)
    axes.legend()
    figure.savefig(folder / "findings-headline.png")
    pyplot.close(figure)


if __name__ == "__main__":
    draw(DOCS)
