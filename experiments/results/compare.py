"""Two folders of results side by side: another host, kernel or version of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.ratios import Effect, Estimate, estimate, verdict

from ..plan.blocks import Named
from .analysis import JUDGED, PACE
from .effects import effect
from .markdown import markdown_table
from .page import html, table
from .rows import Row, host_line

COLUMNS = ("cell", "of", "arm", "metric", "before", "after", "after / before", "worst A/A", "verdict")


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of one arm; below 1, the second folder is better."""

    cell: str
    part: str
    arm: str
    metric: str
    before: float
    after: float
    effect: Estimate
    spread: float
    verdict: Effect


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that both have, and what makes them different."""

    title: str
    conditions: tuple[str, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One folder."""

    folder: Path
    title: str
    asked: Mapping[str, object]
    host: Mapping[str, object]
    rows: Sequence[Row[Named]]


def differences_of(before: Side, after: Side) -> Comparison:
    """Refuses two folders that have no cell in common."""
    known = {(row.cell.name, row.part): row for row in before.rows}
    pairs = [(known[key], row) for row in after.rows if (key := (row.cell.name, row.part)) in known]
    if not pairs:
        raise Refusal(ExitStatus.USAGE, f"{before.folder}, {after.folder}: have no cell in common")
    differences = tuple(one for pair in pairs for one in _differences(*pair))
    return Comparison(f"{before.folder} – {after.folder}", tuple(_conditions(before, after)), differences)


def _conditions(before: Side, after: Side) -> Iterator[str]:
    for which, one in (("before", before), ("after", after)):
        yield f"{which}: {one.title or one.folder.name}: {host_line(one.host)}, seed {one.asked['seed']}"
    mine, theirs = before.asked, after.asked
    other = sorted(key for key in mine if mine[key] != theirs.get(key) and key not in ("title", "claim"))
    if other:
        yield f"not the same experiment: {', '.join(other)} differ"
    if mine["seed"] != theirs["seed"]:
        yield "other arrivals: repetitions are paired by number only"


def _in_both(one: Row[Named], other: Row[Named]) -> Row[Named]:
    """The row with the repetitions that the other has, too: those of one number had the same arrivals."""
    numbers = {block.repetition for block in other.blocks}
    return replace(one, blocks=tuple(block for block in one.blocks if block.repetition in numbers))


def _differences(before: Row[Named], after: Row[Named]) -> Iterator[Difference]:
    before, after = _in_both(before, after), _in_both(after, before)
    for arm in before.arms if before.blocks else ():
        if arm not in after.arms:
            continue
        for metric in (*JUDGED, PACE):
            had, has = before.values(arm, metric), after.values(arm, metric)
            spreads = [row.summary.spread.get(metric) for row in (before, after)]
            if not had or not has or None in spreads:
                continue
            found = estimate([one / other for one, other in zip(has, had, strict=True)])
            spread = max(filter(None, spreads))
            yield Difference(
                before.cell.name,
                before.part,
                arm,
                metric,
                estimate(had).ratio,
                estimate(has).ratio,
                found,
                spread,
                verdict(found, len(had), spread),
            )


def _cells(one: Difference) -> tuple[str, ...]:
    unit, name = (1e6, f"{one.metric}, ms") if one.metric in JUDGED else (1.0, f"{one.metric}, s")
    values = (f"{one.before / unit:.3g}", f"{one.after / unit:.3g}")
    return (one.cell, one.part, one.arm, name, *values, effect(one.effect), f"{one.spread:.2f}", one.verdict)


def text_of(found: Comparison) -> str:
    """For a terminal, or a page in Markdown."""
    return "\n".join([*found.conditions, "", markdown_table(COLUMNS, map(_cells, found.differences))])


def page_of(found: Comparison) -> str:
    """The same as a page."""
    told = [f"<p>{line}</p>" for line in found.conditions]
    body = [f"<h1>{found.title}</h1>", *told, table(COLUMNS, map(_cells, found.differences))]
    return html(found.title, body)
