"""Experiments with real applications on this host: what there is to do, done, and reported."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import needs
from dasec.lab.kit.load_driver import calibrate

from ..drivers.catalogue import DRIVERS
from ..places.ground import leaving_as_before, this_host
from ..places.places import missing_place, unready_place
from ..plan.file import Told
from ..plan.schema import Experiment, checked
from ..results.compare import Side
from ..results.export import export
from ..results.folder import note, read, store_in
from ..results.page import write_page
from .clock import minutes
from .family import Ways
from .runner import Schedule, measure_all, refuse_unfit, schedule

KEYS = ("mix",)
"""That only such a file has."""

CALIBRATION = "iterations-per-us"
"""As the store has it of the host: one number for all runs that are compared."""


def experiment_in(told: Told, file: Path) -> Experiment:
    """Checked whole, on so many cores as this host has, if the file does not say it."""
    asked = checked(told, file, DRIVERS)
    return asked.model_copy(update={"cores": asked.cores or len(os.sched_getaffinity(0))})


def check(told: Told, file: Path, ways: Ways) -> tuple[str, ...]:
    """Says what would be run; what is missing here."""
    wish = experiment_in(told, file)
    found = schedule(wish, DRIVERS, missing_place)
    _announce(wish, found)
    return tuple(f"{gap.what}: {gap.why}" for gap in found.conditions.gaps) + found.conditions.missed


def run(told: Told, file: Path, out: Path, ways: Ways) -> None:
    """All blocks that are not there yet, then the report."""
    wish = experiment_in(told, file)
    found = schedule(wish, DRIVERS, unready_place)
    _announce(wish, found)
    for gap in found.conditions.gaps:
        click.echo(f"not here: {gap.what}: {gap.why}")
    for line in found.conditions.missed:
        click.echo(f"warning: {line}")
    refuse_unfit(wish, found, anyway=ways.anyway)
    needs.check_root()
    needs.check_libraries()
    store = store_in(out)
    known = store.asked_for(wish)
    host = this_host(known, out) | ({} if known else _calibrated())
    store.belonging_to(known, wish, host)
    note(out, found.conditions)
    calibration = float(str(host[CALIBRATION]))

    def measure() -> None:
        failed = measure_all(wish, DRIVERS, found, store, calibration, click.echo)
        note(out, replace(found.conditions, gaps=(*found.conditions.gaps, *failed)))
        if failed:
            report(told, out)
            raise Refusal(ExitStatus.FAILED, *(f"{gap.what}: {gap.why}" for gap in failed))

    leaving_as_before(out, measure)
    report(told, out)


def report(told: Told, folder: Path) -> None:
    """A page, and tables as files."""
    results = read(folder)
    page = write_page(results)
    tables = export(results)
    click.echo(f"report: {page}; {', '.join(one.name for one in tables)}")
    if not results.rows:
        raise Refusal(ExitStatus.FAILED, f"{folder}: no block is finished yet")


def side(told: Told, folder: Path) -> Side:
    """To be compared."""
    results = read(folder)
    asked = results.experiment.model_dump(mode="json")
    return Side(folder, results.experiment.title, asked, results.asked.host, results.rows)


def _calibrated() -> dict[str, object]:
    """How fast this host is: once, so that an experiment that goes on has the same work."""
    with tempfile.TemporaryDirectory(prefix="dasec-apps-") as folder:
        return {CALIBRATION: calibrate(Path(folder))}


def _announce(wish: Experiment, found: Schedule) -> None:
    cells = dict.fromkeys(block.cell.name for block in found.blocks)
    click.echo(
        f"{wish.title}: {len(cells)} cells, {wish.repetitions} repetitions, arms {', '.join(wish.arms)}:"
        f" {found.runs} runs of {found.run_s:g} s, about {minutes(found.runs * found.run_s)};"
        f" seed {wish.seed}"
    )
