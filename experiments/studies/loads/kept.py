"""The runs in results/ that pages quote, and their tables as text. The histograms are left out of them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.arms import CONTROL
from dasec.lab.kit.ratios import geometric_mean

from ...plan.cells import Cell, Suite
from ...plan.oracle import ORACLE
from ...results.analysis import JUDGED, Share, Summary, summarise
from ...results.effects import effect, short
from ...results.markdown import markdown_table
from ...results.store import Done, Store, done_in

RESULTS = Path(__file__).resolve().parent / "results"
MODES = {
    "strict": "critical",
    "giving": 'critical:fairness="giving"',
    "demand": 'critical:fairness="demand"',
}
"""What `fairness` says, and the arm of that name. `strict` is the usual one."""

GUARDED = "critical+guard"


@dataclass(frozen=True, slots=True)
class Kept:
    """One experiment: what was asked, and every finished block."""

    wish: Suite
    blocks: tuple[Done, ...]

    def summaries(self) -> tuple[Summary[Cell], ...]:
        """What the blocks say of each load."""
        found = [summarise(cell, self.blocks, self.wish.arms) for cell in self.wish.cells.possible]
        return tuple(one for one in found if one)

    def each_repetition(self, cell: str, arm: str) -> tuple[float, ...]:
        """The ratio of the means, in the order of repetitions."""
        return tuple(
            one.arms[arm].ratios["mean"].ratio
            for block in sorted(self.blocks, key=lambda block: block.repetition)
            for each in self.wish.cells.possible
            if each.name == cell and (one := summarise(each, [block], self.wish.arms))
        )

    def with_troubles(self, cell: str, arm: str) -> int:
        """In how many repetitions the daemon complained of something: a guard, that it took a policy off."""
        return sum(bool(block.of(arm).troubles) for block in self.blocks if block.cell == cell)


def kept(name: str) -> Kept:
    """What results/NAME holds."""
    asked = Store(RESULTS / name, Suite).kept()
    with gzip.open(RESULTS / name / "runs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return Kept(asked.wish, done_in(lines))


def modes_table(summaries: Sequence[Summary[Cell]], metric: str) -> str:
    """Each load under each way to be fair, and what part that is of the oracle's gain."""
    headings = [f"{metric} over `none`", "A/A"]
    headings += [heading for mode in MODES for heading in (f"`{mode}`", "share")]
    rows = [
        [
            f"`{one.cell.load}`",
            effect(one.arms[CONTROL].ratios[metric]),
            *(text for arm in MODES.values() for text in _mode(one, arm, metric)),
            effect(one.arms[ORACLE].ratios[metric]),
        ]
        for one in summaries
    ]
    means = {arm: mean_of_all(summaries, arm, metric) for arm in (CONTROL, *MODES.values(), ORACLE)}
    last = ["**geometric mean**", short(means[CONTROL])]
    for arm in MODES.values():
        last += [f"**{short(means[arm])}**", f"**{(1 - means[arm]) / (1 - means[ORACLE]):.0%}**"]
    return markdown_table([*headings, "oracle"], [*rows, [*last, f"**{short(means[ORACLE])}**"]])


def mean_of_all(summaries: Sequence[Summary[Cell]], arm: str, metric: str) -> float:
    """The geometric mean over the loads."""
    return geometric_mean([one.arms[arm].ratios[metric].ratio for one in summaries])


def _mode(one: Summary[Cell], arm: str, metric: str) -> Iterator[str]:
    yield effect(one.arms[arm].ratios[metric])
    yield _part(one.arms[arm].shares[metric])


def _part(found: Share) -> str:
    return f"{found.share:.0%} [{found.low:.0%}, {found.high:.0%}]"


def guarded_table(found: Kept) -> str:
    """`critical` under the guard beside the plain host twice, every repetition."""
    rows = []
    for one in found.summaries():
        for arm in (CONTROL, GUARDED):
            ratios = one.arms[arm].ratios
            each = " ".join(map(short, found.each_repetition(one.cell.name, arm)))
            off = found.with_troubles(one.cell.name, arm) if arm == GUARDED else "–"
            rows.append(
                [
                    f"`{one.cell.load}`, plain {one.mean_ms:.1f}, {one.p99_ms:.0f} ms",
                    "A/A" if arm == CONTROL else f"`{arm}`",
                    *(effect(ratios[metric]) for metric in ("mean", "p99")),
                    each,
                    effect(ratios["background"]),
                    str(off),
                ]
            )
    headings = ["load", "arm", "mean", "p99", "mean in each repetition", "background done", "off at the end"]
    return markdown_table(headings, rows)


def no_gain_table(found: Kept) -> str:
    """`critical` beside the plain host twice, where nothing is to be gained."""
    rows = [
        [
            f"`{one.cell.load}`",
            f"{one.mean_ms:.2f}, {one.p99_ms:.1f}",
            *(effect(one.arms[arm].ratios[metric]) for arm in (CONTROL, "critical") for metric in JUDGED),
        ]
        for one in found.summaries()
    ]
    headings = ["load", "plain: mean, p99 ms", "A/A: mean", "A/A: p99", "`critical`: mean", "p99"]
    return markdown_table(headings, rows)
