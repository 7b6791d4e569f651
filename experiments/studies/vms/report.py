"""The report: what clients outside and inside saw, at each consolidation ratio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dasec.lab.kit.arms import CONTROL
from dasec.lab.kit.ratios import CONFIDENCE

from ...plan.cells import Cell
from ...results.analysis import JUDGED, Summary
from ...results.effects import effect
from ...results.markdown import markdown_table
from ...results.plots import draw
from .wish import Wish

PICTURE = "Latency, ratio to the plain host, against vCPUs a core"


def publish(wish: Wish, summaries: Sequence[Summary[Cell]], host: Mapping[str, object], folder: Path) -> Path:
    """Writes report.md and its picture; returns the page."""
    pictures = draw(wish, summaries, folder)
    page = folder / "report.md"
    page.write_text("\n".join(_lines(wish, summaries, host, pictures)) + "\n", encoding="utf-8")
    return page


def _lines(
    wish: Wish, summaries: Sequence[Summary[Cell]], host: Mapping[str, object], pictures: Sequence[str]
) -> Iterator[str]:
    policies = [arm for arm in wish.arms if arm not in ("none", CONTROL)]
    columns = ["client", "ratio", "busy", "none: mean, p99 ms"]
    columns += [f"{arm}: {metric}" for arm in (CONTROL, *policies) for metric in JUDGED]
    columns += [f"{arm}: verdict" for arm in policies]
    yield from ("# VMs", "")
    yield (
        f"Kernel {host['kernel']}, {wish.cores} cores, seed {wish.seed}; TCG guests of 2 vCPUs;"
        f" {wish.seconds:g} s measured after {wish.warmup_s:g} s of warm-up, {wish.repetitions} repetitions,"
        " arms interleaved, with the same requests."
    )
    yield (
        f"Ratios to the plain host of the same repetition, geometric means with {CONFIDENCE:.0%} bootstrap"
        f" intervals; below 1 is better. `{CONTROL}` is the plain host once more: noise."
    )
    yield ""
    rows = []
    for one in summaries:
        row = [
            one.cell.load,
            f"{one.cell.ratio:g}",
            f"{one.busy:.2f}",
            f"{one.mean_ms:.2f}, {one.p99_ms:.1f}",
        ]
        row += [effect(one.arms[arm].ratios.get(metric)) for arm in (CONTROL, *policies) for metric in JUDGED]
        row += [str(one.arms[arm].verdict or "–") for arm in policies]
        rows.append(row)
    yield from (markdown_table(columns, rows), "")
    for one in summaries:
        cpu = ", ".join(f"{arm} {one.arms[arm].daemon_cpu:.3f}" for arm in policies)
        yield f"- {one.cell.load}, ratio {one.cell.ratio:g}: daemon, cores: {cpu}; steal {one.steal:.1%}."
        yield from (f"- {one.cell.load}, ratio {one.cell.ratio:g}: {trouble}" for trouble in one.troubles)
    for name in pictures:
        yield from ("", f"![{PICTURE}]({name})")
