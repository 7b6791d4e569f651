"""The table and the picture of the kept runs.

    python -m experiments.caps

The runs themselves: python -m experiments.testbed run (README.md).
"""

from __future__ import annotations

from pathlib import Path

import click

from ..suite.kept_cells import Kept

KEPT = Kept(
    Path(__file__).resolve().parent / "results",
    base="no-limit",
    base_name="no limit",
    arms={
        "none": "limit",
        "none-again": "limit again",
        "critical": "limit, `critical`",
        "critical+caps": "limit, `critical` with caps",
    },
    ours="critical+caps",
    plain="none",
)


@click.command()
def command() -> None:
    """Print the table of the kept runs, and draw their picture."""
    click.echo("\n".join(KEPT.table()))
    KEPT.draw(KEPT.results / "p99.png")


if __name__ == "__main__":
    command()
