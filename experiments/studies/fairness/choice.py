"""What is asked of the experiment, from the options of a command."""

from __future__ import annotations

import secrets
from dataclasses import replace

import click

from dasec.critical.parameters import Fairness
from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.layout import GroupLayout
from dasec.lab.kit.scenario import Timing

from ...results.store import Store
from ...run.options import giving
from .scenarios import CONTESTS
from .wish import Wish

EXPERIMENT = "fairness"


_OPTIONS = (
    click.option("--contests", default="all", help=f"Of {', '.join(CONTESTS)}."),
    click.option("--layouts", default="flat,vm", help="flat (vCPUs side by side), vm (a group a workload)."),
    click.option("--repetitions", type=click.IntRange(1, 1000), default=6),
    click.option("--seconds", type=click.FloatRange(0.5, 3600), default=4.0, help="Measured part of a run."),
    click.option("--warmup", type=click.FloatRange(0, 600), default=1.0, help="Before it: policies settle."),
    click.option("--lead", type=click.FloatRange(0.1, 60), default=0.6, help="For everything to start."),
    click.option(
        "--fairness",
        type=click.Choice(list(map(str, Fairness))),
        default=str(Fairness.STRICT),
        help="The setting of critical.",
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**31 - 1), help="Of arrivals and orders, else a fresh one."
    ),
)


choosing = giving(_OPTIONS)
"""Gives a command the options of a choice."""


def wish_for(options: dict[str, object], cores: int, store: Store[Wish], *, pinned: bool = False) -> Wish:
    """The wish of these options. Refuses what the folder's results were not asked for."""
    seed = options["seed"]
    seconds, warmup_s, lead_s = (float(str(options[name])) for name in ("seconds", "warmup", "lead"))
    wish = Wish(
        _names("contests", str(options["contests"]), tuple(CONTESTS)),
        _names("layouts", str(options["layouts"]), tuple(map(str, GroupLayout))),
        int(str(options["repetitions"])),
        Timing(seconds, warmup_s, lead_s),
        cores,
        int(str(seed)) if seed is not None else secrets.randbelow(2**31),
        pinned,
        Fairness(str(options["fairness"])),
    )
    known = store.asked()
    if known is None:
        return wish
    wish = wish if seed is not None else replace(wish, seed=known.wish.seed)
    store.check_options(known, wish)
    return wish


def _names(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = known if text == "all" else tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(known):
        raise Refusal(
            ExitStatus.USAGE, f"{EXPERIMENT}: --{option}: {text}: give all, or some of {', '.join(known)}"
        )
    return names
