"""What the daemon says of who woke whom, held against what guests counted, as a command."""

from __future__ import annotations

import click

from ...places.ground import leaving_as_before
from ...results.markdown import markdown_table
from .edges import Agreement, total
from .guests import accelerator_for, on_stage
from .truth import compared
from .wish import Wish


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def command() -> None:
    """Three virtual machines of vm-images/bare beside each other."""


@command.command()
@click.option("--seconds", type=click.FloatRange(0.5, 600), default=10.0, help="Of load.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="Of arrivals.")
@click.option("--libvirt", is_flag=True, help="Guests are domains; the daemon finds them.")
def edges(seconds: float, seed: int, libvirt: bool) -> None:  # noqa: FBT001
    """Who woke whom: what the daemon recorded beside what the guests themselves counted."""
    wish = Wish(repetitions=1, seconds=seconds, warmup_s=0.0, seed=seed, libvirt=libvirt)
    (situation,) = wish.situations(accelerator_for(wish))
    found: list[Agreement] = []

    def act() -> None:
        with on_stage(situation) as stage:
            found.extend(compared(stage, wish))

    leaving_as_before(None, act)
    rows = zip((*situation.guests.names, "all"), (*found, total(found)), strict=True)
    head = ("guest", "wake-ups by its own count", "by the daemon's", "precision", "recall")
    click.echo(
        markdown_table(
            head,
            [
                (name, str(one.true), str(one.said), f"{one.precision:.3f}", f"{one.recall:.3f}")
                for name, one in rows
            ],
        )
    )
