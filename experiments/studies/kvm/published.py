"""Tables and pictures of the kept runs: what KVM virtual machines gain, and how many fit."""

from __future__ import annotations

from pathlib import Path

import click

from dasec.lab.kit.arms import CONTROL, ON_PARTIAL, ON_SCX, SCX
from dasec.lab.kit.ratios import Estimate, estimate, paired_ratios

from ...plan.arms import FOLLOW
from ...results.analysis import JUDGED
from ...results.effects import effect
from ...results.markdown import markdown_table
from ..servers import curve
from ..servers.published import ARMS, Cell, cells, draw, serving, table, words

RESULTS = Path(__file__).resolve().parent / "results"
PICTURE = RESULTS / "kvm.png"
DAEMON = RESULTS / "daemon"
DOMAINS = RESULTS / "domains"
SEEDS = RESULTS / "seeds"
CURVES = RESULTS / "curve"
CURVE = CURVES / "curve.jsonl"
ALL_ARMS = {**ARMS, "dasec": "`dasec`"}
"""The paper's rules, too."""

ON_OURS = {
    CONTROL: ARMS[CONTROL],
    SCX: ARMS[SCX],
    f"{ON_SCX}critical": "`critical` on it",
    f"{ON_SCX}dasec": "`dasec` on it",
    f"{ON_PARTIAL}critical": "`critical`, partial",
}
"""The daemon on our own scheduler; partial: that has the virtual machines alone."""

FOLLOWING = {
    CONTROL: ARMS[CONTROL],
    "critical": ARMS["critical"],
    f"critical{FOLLOW}": "`critical`, `follow`",
    "oracle": ARMS["oracle"],
    f"oracle{FOLLOW}": "oracle, `follow`",
}
"""Virtual machines as libvirt's domains; `follow`: QEMU's own threads are managed, too."""


def followed(found: tuple[Cell, ...]) -> str:
    """What `follow` is worth: each policy with it over the same without."""
    judged = [(policy, metric) for policy in ("critical", "oracle") for metric in JUDGED]
    head = ["server", *(f"{FOLLOWING[policy]}: {metric}" for policy, metric in judged)]
    rows = [[one.file, *(effect(worth(one, policy, metric)) for policy, metric in judged)] for one in found]
    return markdown_table(head, rows)


def worth(cell: Cell, policy: str, metric: str) -> Estimate | None:
    """Of one policy in one cell, each VM beside itself; None if it was not there."""
    with_it, without = cell.runs(f"{policy}{FOLLOW}"), cell.runs(policy)
    if not with_it or not without:
        return None
    pairs: list[float] = []
    for ours, plain in zip(with_it, without, strict=True):
        values = [one.value(metric) for one in serving(ours)]
        pairs += paired_ratios(values, [one.value(metric) for one in serving(plain)])
    return estimate(pairs)


def publish() -> None:
    """Print and draw them."""
    found, points = tuple(cells(RESULTS)), curve.points(CURVE)
    click.echo(table(found, ALL_ARMS))
    click.echo(words(found, ALL_ARMS))
    click.echo(table(tuple(cells(SEEDS))))
    click.echo(table(tuple(cells(DAEMON)), ON_OURS))
    click.echo(table(tuple(cells(DOMAINS)), FOLLOWING))
    click.echo(words(tuple(cells(DOMAINS)), FOLLOWING))
    click.echo(followed(tuple(cells(DOMAINS))))
    draw(found, PICTURE, ALL_ARMS)
    click.echo(curve.table(points))
    click.echo(curve.held({"kvm": points}))
    curve.draw({"kvm": points}, CURVES / "curve.png")
