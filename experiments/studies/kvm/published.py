"""Tables and pictures of the kept runs: what KVM virtual machines gain, and how many fit."""

from __future__ import annotations

from pathlib import Path

import click

from ..servers import curve
from ..servers.published import ARMS, cells, draw, table, words

RESULTS = Path(__file__).resolve().parent / "results"
PICTURE = RESULTS / "kvm.png"
SEEDS = RESULTS / "seeds"
CURVES = RESULTS / "curve"
CURVE = CURVES / "curve.jsonl"
ALL_ARMS = {**ARMS, "dasec": "`dasec`"}
"""The paper's rules, too."""


def publish() -> None:
    """Print and draw them."""
    found, points = tuple(cells(RESULTS)), curve.points(CURVE)
    click.echo(table(found, ALL_ARMS))
    click.echo(words(found, ALL_ARMS))
    click.echo(table(tuple(cells(SEEDS))))
    draw(found, PICTURE, ALL_ARMS)
    click.echo(curve.table(points))
    click.echo(curve.held({"kvm": points}))
    curve.draw({"kvm": points}, CURVES / "curve.png")
