"""Consolidated VMs under policies beside the plain host: `vms = true`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts, needs
from dasec.lab.kit.bench import Bench
from dasec.lab.kit.blocks import Allowance, measure_block
from dasec.lab.kit.results import RunResult
from dasec.lab.kit.run import measure_one
from dasec.lab.kit.sentinel import measuring
from guests.built import HostCannotError, guest_image
from guests.libvirtd import missing_tools

from ...places.ground import leaving_as_before, this_host
from ...plan.blocks import Block
from ...plan.file import Told, validated
from ...results.compare import Side
from ...results.rows import rows_of
from ...results.store import Asked, Store
from ...run.clock import minutes
from ...run.family import Ways, lacking
from .fleet import Fleet
from .measure import INSIDE, OUTSIDE, bench_for, seen_from
from .report import publish
from .wish import Wish

KEYS = ("vms",)


def check(told: Told, file: Path, ways: Ways) -> tuple[str, ...]:
    """Says what would be run; what is missing here."""
    wish = validated(Wish, told, file)
    _announce(wish, len(wish.ratios) * wish.repetitions)
    return tuple(_lacking())


def run(told: Told, file: Path, out: Path, ways: Ways) -> None:
    """All repetitions that are not there yet, then the report."""
    wish = validated(Wish, told, file)
    wish = replace(wish, cpus=wish.cores)
    store = Store(out, Wish)
    known = store.asked_for(wish)
    if missing := tuple(_lacking()):
        raise Refusal(ExitStatus.HOST, *missing)
    try:
        image = guest_image("small")
    except HostCannotError as cannot:
        raise Refusal(ExitStatus.HOST, str(cannot)) from cannot
    known = store.belonging_to(known, wish, this_host(known, out))
    for line in facts.warnings(wish.cores):
        click.echo(f"warning: {line}")
    leaving_as_before(out, lambda: _measure(wish, store, image))
    _publish(store, known)


def report(told: Told, folder: Path) -> None:
    """A page with its picture."""
    store = Store(folder, Wish)
    _publish(store, store.kept())


def side(told: Told, folder: Path) -> Side:
    """To be compared."""
    store = Store(folder, Wish)
    known = store.kept()
    rows = tuple(rows_of(known.wish.cells(), store.done(), known.wish.arms))
    return Side(folder, known.wish.title, store.plain(known.wish), known.host, rows)


def _lacking() -> Iterator[str]:
    yield from lacking(needs.check_root, needs.check_libraries)
    yield from (f"{tool}: not found: DASEC_CI=1 tools/setup" for tool in missing_tools())


def _announce(wish: Wish, repetitions: int) -> None:
    runs = repetitions * len(wish.arms)
    click.echo(
        f"ratios {', '.join(f'{ratio:g}' for ratio in wish.ratios)}, arms {', '.join(wish.arms)}: {runs} runs"
        f" of {wish.run_s:g} s, about {minutes(runs * wish.run_s)}; seed {wish.seed}"
    )


def _measure(wish: Wish, store: Store[Wish], image: Path) -> None:
    """What is missing of them."""
    finished = {one.key for one in store.done()}
    missing = [
        (ratio, repetition, order)
        for ratio, repetition, order in wish.orders()
        if (wish.cell(INSIDE, ratio).name, repetition) not in finished
    ]
    _announce(wish, len(missing))
    if not missing:
        return
    calibration, allowance, tree = None, Allowance(), needs.find_tree()
    with (
        tempfile.TemporaryDirectory(prefix="dasec-vms-") as name,
        Fleet(Path(name), image) as fleet,
        measuring(tree) as directory,
    ):
        for ratio, repetition, order in missing:
            fleet.grow(wish.guests(ratio))
            calibration = calibration or fleet.calibrate()
            bench = bench_for(fleet, wish, tree, directory, calibration)
            click.echo(f"ratio {ratio:g}, repetition {repetition + 1}/{wish.repetitions}")
            runs = measure_block(order, partial(_one, bench, repetition), allowance)
            for where in (OUTSIDE, INSIDE):
                seen = [seen_from(where, one) for one in runs]
                store.add(Block(wish.cell(where, ratio), repetition, order), seen)


def _one(bench: Bench, repetition: int, arm: str) -> RunResult:
    return measure_one(bench, arm, repetition, lambda: None)


def _publish(store: Store[Wish], known: Asked[Wish]) -> None:
    summaries = [row.summary for row in rows_of(known.wish.cells(), store.done(), known.wish.arms)]
    if not summaries:
        raise Refusal(ExitStatus.FAILED, f"{store.folder}: no run is finished yet")
    click.echo(f"report: {publish(known.wish, summaries, known.host, store.folder)}")
