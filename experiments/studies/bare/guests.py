"""Three guests of our own on the plain host, under `critical` and an oracle: `bare = true`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from dasec.errors import ExitStatus, Refusal
from dasec.lab.demo.lines import lines_of
from dasec.lab.demo.plot import draw
from dasec.lab.demo.report import print_report
from dasec.lab.kit import facts, needs
from dasec.lab.kit.results import Measured
from dasec.lab.kit.sentinel import measuring
from guests.bare.built import bare_guest
from guests.bare.machine import Accelerator, why_not_kvm
from guests.built import HostCannotError
from guests.libvirtd import missing_tools

from ...places.ground import leaving_as_before, this_host
from ...plan.blocks import Block
from ...plan.file import Told, validated
from ...results.compare import Side
from ...results.rows import rows_of
from ...results.store import Asked, Store
from ...run.clock import Clock, minutes
from ...run.family import Ways, lacking
from .measure import Stage, measure, staged
from .wish import GUESTS, VCPUS, QuickWish, Situation, guest_names

KEYS = ("bare",)
PICTURE = "quick.png"
ACCELERATOR = "accelerator"
"""Of the host that measured."""

PLAIN_WIDTH = 120
"""Where no terminal is."""


def check(told: Told, file: Path, ways: Ways) -> tuple[str, ...]:
    """Says what would be run; what is missing here."""
    wish = validated(QuickWish, told, file)
    _announce(wish, wish.repetitions)
    return tuple(_lacking(wish))


def run(told: Told, file: Path, out: Path, ways: Ways) -> None:
    """All repetitions that are not there yet, then the report."""
    wish = validated(QuickWish, told, file)
    store = Store(out, QuickWish)
    known = store.asked_for(wish)
    finished = {one.repetition for one in store.done()}
    _announce(wish, wish.repetitions - len(finished))
    accelerator = accelerator_for(wish)
    host = {**this_host(known, out), ACCELERATOR: str(accelerator)}
    known = store.belonging_to(known, wish, host)
    for line in facts.warnings(len(os.sched_getaffinity(0))):
        click.echo(f"warning: {line}")

    def act() -> None:
        with on_stage(accelerator, libvirt=wish.libvirt) as stage:
            _repeat(wish, finished, store, stage)

    if len(finished) < wish.repetitions:
        leaving_as_before(out, act)
    _tell(store, known)


def report(told: Told, folder: Path) -> None:
    """A verdict, a table and a picture."""
    store = Store(folder, QuickWish)
    _tell(store, store.kept())


def side(told: Told, folder: Path) -> Side:
    """To be compared."""
    store = Store(folder, QuickWish)
    known = store.kept()
    rows = tuple(rows_of([_situation(known)], store.done(), known.wish.arms))
    return Side(folder, known.wish.title, told, known.host, rows)


def accelerator_for(wish: QuickWish) -> Accelerator:
    """KVM where it serves; says so in one line. Refuses where no guest can be had."""
    if missing := tuple(_lacking(wish)):
        raise Refusal(ExitStatus.HOST, *missing)
    try:
        bare_guest()
        why = why_not_kvm()
    except (HostCannotError, FileNotFoundError) as cannot:
        raise Refusal(ExitStatus.HOST, str(cannot)) from cannot
    click.echo(why or f"KVM serves here: {GUESTS} guests of {VCPUS} vCPUs")
    return Accelerator.TCG if why else Accelerator.KVM


def _lacking(wish: QuickWish) -> Iterator[str]:
    yield from lacking(needs.check_root, needs.check_libraries)
    if wish.libvirt:
        yield from (f"{tool}: not found: DASEC_CI=1 tools/setup" for tool in missing_tools())


def _announce(wish: QuickWish, repetitions: int) -> None:
    runs = repetitions * len(wish.arms)
    click.echo(
        f"{wish.repetitions} repetitions, arms {', '.join(wish.arms)}: {runs} runs of {wish.run_s:g} s, about"
        f" {minutes(runs * wish.run_s)}; seed {wish.seed}"
    )


@contextlib.contextmanager
def on_stage(accelerator: Accelerator, *, libvirt: bool) -> Iterator[Stage]:
    """The guests, up; gone afterwards."""
    tree = needs.find_tree()
    with measuring(tree) as directory, staged(tree, directory, accelerator, libvirt=libvirt) as stage:
        yield stage


def _repeat(wish: QuickWish, finished: set[int], store: Store[QuickWish], stage: Stage) -> None:
    """The arms of a repetition follow each other in random order with the same requests."""
    clock = Clock(len(wish.arms) * (wish.repetitions - len(finished)), wish.run_s)
    situation = Situation.of(stage.accelerator, libvirt=wish.libvirt)
    for repetition, order in enumerate(wish.orders):
        if repetition in finished:
            continue
        runs = []
        for arm in order:
            left = minutes(clock.left_s)
            click.echo(f"repetition {repetition + 1}/{wish.repetitions}: {arm}: {left} left")
            begun_s = time.monotonic()
            runs.append(measure(stage, wish, arm, repetition))
            clock.add(time.monotonic() - begun_s, 1)
        store.add(Block(situation, repetition, order), runs)


def _situation(known: Asked[QuickWish]) -> Situation:
    return Situation.of(str(known.host[ACCELERATOR]), libvirt=known.wish.libvirt)


def _tell(store: Store[QuickWish], known: Asked[QuickWish]) -> None:
    done, name = store.done(), _situation(known).name
    if not done:
        raise Refusal(ExitStatus.FAILED, f"{store.folder}: no repetition is finished yet")
    measured = Measured(
        known.wish.arms, guest_names(), len(done), tuple(run for one in done for run in one.runs)
    )
    lines = lines_of(name, measured)
    console = Console()
    print_report(console if console.is_terminal else Console(width=PLAIN_WIDTH), lines, [measured])
    picture = store.folder / PICTURE
    draw([name], [measured], lines, picture)
    click.echo(f"raw runs: {store.folder}; picture: {picture}")
