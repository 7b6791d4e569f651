"""Guests of our own on the plain host, under policies and an oracle: `bare = true`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console

from dasec.errors import ExitStatus, Refusal
from dasec.lab.demo.lines import Line, lines_of
from dasec.lab.demo.plot import draw
from dasec.lab.demo.report import print_report
from dasec.lab.kit import facts, needs
from dasec.lab.kit.errors import ended_by_signals
from dasec.lab.kit.results import Measured
from dasec.lab.kit.sentinel import measuring
from guests.bare.built import bare_guest, why_not_built
from guests.bare.machine import why_not_kvm
from guests.bare.words import Accelerator
from guests.built import HostCannotError
from guests.libvirtd import missing_tools
from guests.qemu import NAME, why_not_installed

from ...places.ground import leaving_as_before, this_host
from ...plan.blocks import Block
from ...plan.file import Told, refusal, validated
from ...results.compare import Side
from ...results.rows import rows_of
from ...results.store import Asked, Done, Store
from ...run.clock import Clock, minutes
from ...run.family import Ways, lacking
from .measure import Stage, measure, staged
from .situation import VCPUS, Situation
from .wish import Wish, refused

KEYS = ("bare",)
PICTURE = "guests.png"
ACCELERATOR = "accelerator"
"""Of the host that measured."""

PLAIN_WIDTH = 120
"""Where no terminal is."""


def check(told: Told, file: Path, ways: Ways) -> tuple[str, ...]:
    """Says what would be run; what is missing here."""
    wish = _asked(told, file)
    _announce(wish, len(wish.guests) * wish.repetitions)
    return tuple(_lacking(wish))


def run(told: Told, file: Path, out: Path, ways: Ways) -> None:
    """All repetitions that are not there yet, then the report."""
    wish = _asked(told, file)
    store = Store(out, Wish)
    known = store.asked_for(wish)
    accelerator = accelerator_for(wish)
    finished = {one.key for one in store.done()}
    missing = [block for block in wish.blocks(accelerator) if block.key not in finished]
    _announce(wish, len(missing))
    host = {**this_host(known, out), ACCELERATOR: str(accelerator)}
    known = store.belonging_to(known, wish, host)
    for line in facts.warnings(len(os.sched_getaffinity(0))):
        click.echo(f"warning: {line}")

    if missing:
        leaving_as_before(out, lambda: _measure(wish, missing, store))
    _tell(store, known)


def _asked(told: Told, file: Path) -> Wish:
    """What a file asks for. Refuses what it, or later the daemon, cannot take."""
    wish = validated(Wish, told, file)
    if lines := tuple(refused(wish.arms)):
        raise refusal(file, lines)
    return wish


def report(told: Told, folder: Path) -> None:
    """A verdict, a table and a picture."""
    store = Store(folder, Wish)
    _tell(store, store.kept())


def side(told: Told, folder: Path) -> Side:
    """To be compared."""
    store = Store(folder, Wish)
    known = store.kept()
    rows = tuple(rows_of(_situations(known), store.done(), known.wish.arms))
    return Side(folder, known.wish.title, store.plain(known.wish), known.host, rows)


def accelerator_for(wish: Wish) -> Accelerator:
    """KVM where it serves; says so in one line. Refuses where no guest can be had."""
    if missing := tuple(_lacking(wish)):
        raise Refusal(ExitStatus.HOST, *missing)
    try:
        with ended_by_signals():
            bare_guest()
            why = why_not_kvm()
    except HostCannotError as cannot:
        raise Refusal(ExitStatus.HOST, str(cannot)) from cannot
    click.echo(why or f"KVM serves here: guests of {VCPUS} vCPUs")
    return Accelerator.TCG if why else Accelerator.KVM


def _lacking(wish: Wish) -> Iterator[str]:
    yield from lacking(needs.check_root, needs.check_libraries)
    yield from filter(None, (why_not_installed(), why_not_built()))
    if wish.libvirt:
        missing = (tool for tool in missing_tools() if tool != NAME)  # QEMU was asked for
        yield from (f"{tool}: not found: DASEC_CI=1 tools/setup" for tool in missing)


def _announce(wish: Wish, blocks: int) -> None:
    runs = blocks * len(wish.arms)
    each = f" of each of {len(wish.guests)} situations" if len(wish.guests) > 1 else ""
    click.echo(
        f"{wish.repetitions} repetitions{each}, arms {', '.join(wish.arms)}: {runs} runs of {wish.run_s:g} s,"
        f" about {minutes(runs * wish.run_s)}; seed {wish.seed}"
    )


@contextlib.contextmanager
def on_stage(situation: Situation) -> Iterator[Stage]:
    """The guests, up; gone afterwards."""
    tree = needs.find_tree()
    with measuring(tree) as directory, staged(tree, directory, situation) as stage:
        yield stage


def _measure(wish: Wish, blocks: Sequence[Block[Situation]], store: Store[Wish]) -> None:
    """The arms of a block follow each other with the same guests and requests."""
    clock = Clock(len(wish.arms) * len(blocks), wish.run_s)
    tree = needs.find_tree()
    with measuring(tree) as directory:
        for block in blocks:
            runs = []
            with staged(tree, directory, block.cell) as stage:
                for arm in block.arms:
                    where = f"repetition {block.repetition + 1}/{wish.repetitions}, {block.cell.name}"
                    click.echo(f"{where}: {arm}: {minutes(clock.left_s)} left")
                    begun_s = time.monotonic()
                    runs.append(measure(stage, wish, arm, block.repetition))
                    clock.add(time.monotonic() - begun_s, 1)
            store.add(block, runs)


def _situations(known: Asked[Wish]) -> tuple[Situation, ...]:
    return known.wish.situations(str(known.host[ACCELERATOR]))


def kept(known: Asked[Wish], done: Sequence[Done]) -> Iterator[tuple[str, Measured]]:
    """Of each situation that has been measured, by its name, all runs."""
    for situation in _situations(known):
        of = [one for one in done if one.cell == situation.name]
        runs = tuple(run for one in of for run in one.runs)
        if of:
            yield situation.name, Measured(known.wish.arms, situation.guests.names, len(of), runs)


def _tell(store: Store[Wish], known: Asked[Wish]) -> None:
    found = busiest_first(kept(known, store.done()))
    if not found:
        raise Refusal(ExitStatus.FAILED, f"{store.folder}: no repetition is finished yet")
    names, measured, each = zip(*found, strict=True)
    lines = [line for lines in each for line in lines]
    console = Console()
    print_report(console if console.is_terminal else Console(width=PLAIN_WIDTH), lines, measured)
    picture = store.folder / PICTURE
    draw(names, measured, lines, picture)
    click.echo(f"raw runs: {store.folder}; picture: {picture}")


def busiest_first(found: Iterable[tuple[str, Measured]]) -> list[tuple[str, Measured, Sequence[Line]]]:
    """With their lines. The sentence under a report is about the first: where nothing is to be gained it
    would say that nothing is."""
    of = [(name, measured, lines_of(name, measured)) for name, measured in found]
    return sorted(of, key=lambda one: one[2][0].busy, reverse=True)
