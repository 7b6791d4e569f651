"""What the suite is asked to do, from the options of a command."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Sequence
from dataclasses import replace

import click

from dasec.config.config import ConfigError, check
from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.arms import CONTROL, GUARDED, arms_for
from dasec.lab.kit.controller import Managed, configuration
from dasec.lab.kit.layout import NEUTRAL, GroupLayout
from dasec.policies import POLICIES

from ...plan.cells import Wish
from ...plan.loads import LOADS
from ...plan.variants import VARIED, Variant
from ...results.store import Store
from ...run.options import giving

_OPTIONS = (
    click.option("--loads", default="all", help=f"Of {', '.join(LOADS)}."),
    click.option("--ratios", default="4,8", help="vCPUs a core."),
    click.option("--utilisations", default="0.6,0.85", help="Work asked for a core."),
    click.option("--layouts", default="flat", help="flat (vCPUs side by side), vm (a group a workload)."),
    click.option(
        "--policies", default="critical,oracle,dasec", help="Beside none and none-again; NAME+guard: guarded."
    ),
    click.option(
        "--set",
        "constants",
        multiple=True,
        metavar="CONSTANT=VALUE,...",
        help="Beside these, critical with one constant set: an arm for each value.",
    ),
    click.option("--repetitions", type=click.IntRange(1, 1000), default=8),
    click.option("--seconds", type=click.FloatRange(0.2, 3600), default=5.0, help="Measured part of a run."),
    click.option("--warmup", type=click.FloatRange(0, 600), default=2.0, help="Before it: policies settle."),
    click.option("--lead", type=click.FloatRange(0.1, 60), default=1.0, help="For everything to start."),
    click.option(
        "--seed", type=click.IntRange(0, 2**31 - 1), help="Of arrivals and orders, else a fresh one."
    ),
    click.option("--blame/--no-blame", default=True, help="Watch who waits for whom, in all arms alike."),
)


choosing = giving(_OPTIONS)
"""Gives a command the options of a choice."""


def wish_for(options: dict[str, object], cores: int, store: Store[Wish], *, records: bool = False) -> Wish:
    """The wish of these options. Refuses what the folder's results were not asked for."""
    seed = options["seed"]
    wish = Wish(
        _loads(str(options["loads"])),
        _numbers("ratios", str(options["ratios"]), 1000),
        _numbers("utilisations", str(options["utilisations"]), 2),
        _layouts(str(options["layouts"])),
        _arms(str(options["policies"]), options["constants"]),
        int(str(options["repetitions"])),
        float(str(options["seconds"])),
        float(str(options["warmup"])),
        float(str(options["lead"])),
        cores,
        int(str(seed)) if seed is not None else secrets.randbelow(2**31),
        bool(options["blame"]),
        records,
    )
    known = store.asked()
    if known is None:
        return wish
    wish = wish if seed is not None else replace(wish, seed=known.wish.seed)
    store.check_options(known, wish)
    return wish


def _loads(text: str) -> tuple[str, ...]:
    names = tuple(LOADS) if text == "all" else tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in LOADS]
    if unknown or not names:
        raise Refusal(
            ExitStatus.USAGE,
            f"loads: --loads: {', '.join(unknown)}: unknown: known are all, {', '.join(LOADS)}",
        )
    return names


def _numbers(option: str, text: str, most: float) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < number <= most for number in found):
        raise Refusal(
            ExitStatus.USAGE, f"loads: --{option}: {text}: give numbers above 0 and up to {most:g}, as 1,2,4"
        )
    return found


def _layouts(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(map(str, GroupLayout)):
        raise Refusal(ExitStatus.USAGE, f"loads: --layouts: {text}: give flat, vm or both: flat,vm")
    return names


def _arms(policies: str, constants: object) -> tuple[str, ...]:
    names = [name.strip() for name in policies.split(",") if name.strip()]
    unknown = [name for name in names if name.removesuffix(GUARDED) not in POLICIES and name != CONTROL]
    if unknown:
        raise Refusal(
            ExitStatus.USAGE,
            f"loads: --policies: {', '.join(unknown)}: unknown: known are {', '.join(sorted(POLICIES))}",
        )
    assert isinstance(constants, tuple)
    variants = [variant for text in constants for variant in variants_in(text)]
    return arms_for([*names, *(variant.arm for variant in variants)])


def variants_in(text: str) -> Sequence[Variant]:
    """Those of one --set, such as `weight_ratio=3,7,20`. Refuses what the daemon would refuse."""
    constant, _, values = text.partition("=")
    found = [Variant(constant.strip(), value.strip()) for value in values.split(",")]
    for variant in found:
        told = configuration(VARIED, [Managed("any", NEUTRAL, (1,))], variant.settings)
        try:
            check(tomllib.loads(told), variant.arm)
        except ConfigError as error:
            raise Refusal(ExitStatus.USAGE, *(f"loads: --set: {line}" for line in error.lines)) from None
        except tomllib.TOMLDecodeError:
            raise Refusal(
                ExitStatus.USAGE, f"loads: --set: {text}: give a constant and values: weight_ratio=3,7,20"
            ) from None
    return found
