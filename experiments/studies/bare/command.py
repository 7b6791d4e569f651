"""The experiments as commands."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from dasec.errors import ExitStatus, Refusal
from dasec.lab.demo.lines import lines_of
from dasec.lab.demo.plot import draw
from dasec.lab.demo.report import print_report
from dasec.lab.kit import facts, needs
from dasec.lab.kit.ratios import FEWEST
from dasec.lab.kit.results import Measured
from guests.bare.built import bare_guest
from guests.bare.machine import Accelerator, why_not_kvm
from guests.built import HostCannotError
from guests.libvirtd import missing_tools

from ...places.ground import leaving_as_before, prepared
from ...plan.blocks import Block
from ...results.markdown import markdown_table
from ...results.store import Asked, Store
from ...run.clock import Clock, minutes
from .edges import Agreement, total
from .measure import Stage, measure, staged
from .truth import compared
from .wish import ARMS, GUESTS, VCPUS, QuickWish, Situation, guest_names

EXPERIMENT = "bare"
PLAIN_WIDTH = 120
"""Where no terminal is."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def command() -> None:
    """Three virtual machines of vm-images/bare beside each other."""


@command.command()
@click.option("--repetitions", type=click.IntRange(1, 1000), default=FEWEST, help="Fewer tell nothing.")
@click.option("--seconds", type=click.FloatRange(0.5, 600), default=4.0, help="Measured part of a run.")
@click.option("--warmup", type=click.FloatRange(0, 60), default=2.0, help="Before it: policies settle.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Of arrivals and orders, else a fresh one.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("results/bare"))
@click.option("--libvirt", is_flag=True, help="Guests are domains; the daemon finds them.")
def quick(
    repetitions: int, seconds: float, warmup: float, seed: int | None, out: Path, libvirt: bool
) -> None:  # noqa: FBT001
    """Plain host, plain host again, `critical` and an oracle; a verdict, a table and a picture."""
    wish = QuickWish(repetitions, seconds, warmup, secrets.randbelow(2**31) if seed is None else seed)
    store = Store(out, QuickWish)
    if store.asked() is not None:
        raise Refusal(
            ExitStatus.USAGE, f"{EXPERIMENT}: --out: {out}: holds results: name another folder, or remove it"
        )
    accelerator = _accelerator(libvirt=libvirt)
    store.begin(Asked(wish, {**facts.metadata(), "accelerator": str(accelerator)}))
    leaving_as_before(out, lambda: _measure(wish, store, accelerator, libvirt=libvirt))
    _tell(wish, store, Situation.of(accelerator, libvirt=libvirt), out)


@command.command()
@click.option("--seconds", type=click.FloatRange(0.5, 600), default=10.0, help="Of load.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="Of arrivals.")
@click.option("--libvirt", is_flag=True, help="Guests are domains; the daemon finds them.")
def edges(seconds: float, seed: int, libvirt: bool) -> None:  # noqa: FBT001
    """Who woke whom: what the daemon recorded beside what the guests themselves counted."""
    wish = QuickWish(1, seconds, 0.0, seed)
    accelerator = _accelerator(libvirt=libvirt)
    found: list[Agreement] = []
    leaving_as_before(
        Path("nothing"),
        lambda: _on_stage(accelerator, lambda stage: found.extend(compared(stage, wish)), libvirt=libvirt),
    )
    rows = zip((*guest_names(), "all"), (*found, total(found)), strict=True)
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


def _accelerator(*, libvirt: bool) -> Accelerator:
    """KVM where it serves; says so in one line. Refuses where no guest can be had."""
    needs.check_root()
    needs.check_libraries()
    if libvirt and (missing := missing_tools()):
        raise Refusal(
            ExitStatus.HOST, f"{EXPERIMENT}: {', '.join(missing)}: not found: DASEC_CI=1 tools/setup"
        )
    try:
        bare_guest()
        why = why_not_kvm()
    except (HostCannotError, FileNotFoundError) as cannot:
        raise Refusal(ExitStatus.HOST, f"{EXPERIMENT}: {cannot}") from cannot
    click.echo(why or f"KVM serves here: {GUESTS} guests of {VCPUS} vCPUs")
    return Accelerator.TCG if why else Accelerator.KVM


def _on_stage(accelerator: Accelerator, act: Callable[[Stage], None], *, libvirt: bool) -> None:
    tree = needs.find_tree()
    with prepared(tree) as directory, staged(tree, directory, accelerator, libvirt=libvirt) as stage:
        act(stage)


def _measure(wish: QuickWish, store: Store[QuickWish], accelerator: Accelerator, *, libvirt: bool) -> None:
    for line in facts.warnings(len(os.sched_getaffinity(0))):
        click.echo(f"warning: {line}")
    _on_stage(accelerator, lambda stage: _repeat(wish, store, stage), libvirt=libvirt)


def _repeat(wish: QuickWish, store: Store[QuickWish], stage: Stage) -> None:
    """The arms of a repetition follow each other in random order with the same requests."""
    clock = Clock(len(ARMS) * wish.repetitions, wish.run_s)
    situation = Situation.of(stage.accelerator, libvirt=bool(stage.inside))
    for repetition, order in enumerate(wish.orders):
        runs = []
        for arm in order:
            left = minutes(clock.left_s)
            click.echo(f"repetition {repetition + 1}/{wish.repetitions}: {arm}: {left} left")
            begun_s = time.monotonic()
            runs.append(measure(stage, wish, arm, repetition))
            clock.add(time.monotonic() - begun_s, 1)
        store.add(Block(situation, repetition, order), runs)


def _tell(wish: QuickWish, store: Store[QuickWish], situation: Situation, out: Path) -> None:
    runs = tuple(run for done in store.done() for run in done.runs)
    measured = Measured(ARMS, guest_names(), wish.repetitions, runs)
    lines = lines_of(situation.name, measured)
    console = Console()
    print_report(console if console.is_terminal else Console(width=PLAIN_WIDTH), lines, [measured])
    picture = out / "quick.png"
    draw([situation.name], [measured], lines, picture)
    click.echo(f"raw runs: {out}; picture: {picture}")
