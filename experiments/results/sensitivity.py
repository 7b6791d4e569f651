"""How much the constants of `critical` matter: its latency against the value of each, for each load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..plan.cells import Cell
from ..plan.terms import Terms
from ..plan.variants import VARIED, variant_of
from .analysis import JUDGED, Compared, Summary
from .markdown import markdown_table

PICTURE = "sensitivity.png"


def values_of(terms: Terms) -> Mapping[str, tuple[str, ...]]:
    """By constant the values that were tried, ascending."""
    found: dict[str, list[str]] = {}
    for variant in filter(None, map(variant_of, terms.arms)):
        found.setdefault(variant.constant, []).append(variant.value)
    return {constant: tuple(sorted(values, key=_place)) for constant, values in found.items()}


def _place(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float(value == "true")


def sensitivity(terms: Terms, summaries: Sequence[Summary[Cell]]) -> Iterator[str]:
    """A table for each constant: ratios to the plain host, the last column the usual value's."""
    for constant, values in values_of(terms).items():
        arms = [*(f"{VARIED}:{constant}={value}" for value in values), *_usual(terms)]
        yield f"### {constant}"
        yield ""
        head = ["cell", *values, *("usual" for _ in _usual(terms))]
        yield markdown_table(
            head, ([one.cell.name, *(_ratios(one.arms[arm]) for arm in arms)] for one in summaries)
        )
        yield ""


def _usual(terms: Terms) -> tuple[str, ...]:
    return (VARIED,) if VARIED in terms.arms else ()


def _ratios(found: Compared) -> str:
    return " / ".join(f"{found.ratios[metric].ratio:.3f}" for metric in JUDGED if metric in found.ratios)


def draw_sensitivity(terms: Terms, summaries: Sequence[Summary[Cell]], folder: Path) -> tuple[str, ...]:
    """A row for each latency, a panel for each constant, a line for each cell, dotted at what the usual value
    gives; the picture's name, if any."""
    constants = values_of(terms)
    if not constants:
        return ()
    from matplotlib.figure import Figure

    size = (3.6 * len(constants) + 2, 6.4)
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    grid = figure.subplots(len(JUDGED), len(constants), squeeze=False)
    for metric, row in zip(JUDGED, grid, strict=True):
        for (constant, values), axes in zip(constants.items(), row, strict=True):
            for one in summaries:
                shown = [one.arms[f"{VARIED}:{constant}={value}"].ratios.get(metric) for value in values]
                (line,) = axes.plot(
                    range(len(values)),
                    [effect.ratio if effect else float("nan") for effect in shown],
                    marker="o",
                    markersize=4,
                    label=one.cell.name,
                )
                for usual in [one.arms[arm].ratios.get(metric) for arm in _usual(terms)]:
                    if usual:
                        axes.axhline(usual.ratio, color=line.get_color(), linestyle=":", linewidth=1)
            axes.axhline(1, color="0.5", linewidth=0.8)
            axes.set_xticks(range(len(values)), values)
            axes.set_xlabel(constant)
            axes.set_ylabel(f"{metric}, ratio to the plain host")
            axes.grid(visible=True, color="0.9")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8)
    figure.savefig(folder / PICTURE, format="png")
    return (PICTURE,)
