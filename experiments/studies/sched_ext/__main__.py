"""The table and the picture of the kept runs.

    python -m experiments.studies.sched_ext

The runs themselves: python -m experiments.studies.testbed run --kernel sched_ext (README.md).
"""

from __future__ import annotations

from pathlib import Path

import click

from ...results.kept_cells import Kept

KEPT = Kept(
    Path(__file__).resolve().parent / "results",
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


@click.command()
def command() -> None:
    """Print the table of the kept runs, and draw their picture."""
    click.echo("\n".join(KEPT.table()))
    KEPT.draw(KEPT.results / "p99.png")


if __name__ == "__main__":
    command()
