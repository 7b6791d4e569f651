"""Tables and pictures of the kept runs: what KVM virtual machines gain, and how many fit."""

from __future__ import annotations

from pathlib import Path

import click

from dasec.lab.kit.arms import CONTROL, ON_PARTIAL, ON_SCX, SCX

from ...plan.arms import FOLLOW
from ..servers import curve
from ..servers.published import ARMS, cells, draw, table, words

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


def publish() -> None:
    """Print and draw them."""
    found, points = tuple(cells(RESULTS)), curve.points(CURVE)
    click.echo(table(found, ALL_ARMS))
    click.echo(words(found, ALL_ARMS))
    click.echo(table(tuple(cells(SEEDS))))
    click.echo(table(tuple(cells(DAEMON)), ON_OURS))
    click.echo(table(tuple(cells(DOMAINS)), FOLLOWING))
    click.echo(words(tuple(cells(DOMAINS)), FOLLOWING))
    draw(found, PICTURE, ALL_ARMS)
    click.echo(curve.table(points))
    click.echo(curve.held({"kvm": points}))
    curve.draw({"kvm": points}, CURVES / "curve.png")
