"""The tables and the picture of the kept runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ...results.kept_cells import Kept, Seen
from ...results.markdown import markdown_table

HERE = Path(__file__).resolve().parent

KEPT = Kept(
    HERE / "results",
    base="none",
    base_name="plain",
    arms={
        "none-again": "plain again",
        "oracle": "EEVDF's oracle",
        "scx": "`dasec scx`",
        "scx:critical": "the daemon on it",
    },
    ours="scx",
    plain="none",
)

LAPSE = replace(KEPT, results=HERE / "lapse-results")
"""Some cells with the rule of docs/decisions/0078-lapse.md: `scx`, and some of the plain kernel again."""


def lapse_table() -> str:
    """These, and what the same cells had before, each over its own plain run if there is one."""
    before = dict(KEPT.cells())

    def over(run: Seen, plain: Seen) -> str:
        return f"{run.mean_ms / plain.mean_ms:.2f} / {run.p99_ms / plain.p99_ms:.2f}"

    rows = []
    for name, runs in LAPSE.cells():
        then, now = before[name], runs["scx"]
        plain = runs.get("none", then["none"])
        ratios = [*(over(then[arm], then["none"]) for arm in ("oracle", "scx")), over(now, plain)]
        done = f"{now.background_s / plain.background_s:.2f}" if plain.background_s else "–"
        rows.append([name, *ratios, f"{done}, {now.requests / plain.requests:.2f}"])
    head = ["cell", "EEVDF's oracle", "the rule before", "now", "background, requests done"]
    return markdown_table(head, rows)


def publish() -> None:
    """Print and draw them."""
    KEPT.publish()
    click.echo(f"\n{lapse_table()}")
