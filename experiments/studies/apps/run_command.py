"""Experiments as commands: run, report, compare."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts, needs
from dasec.lab.kit.run import calibrate
from dasec.lab.load_tool import find_tool

from ...drivers.catalogue import DRIVERS
from ...places.ground import leaving_as_before
from ...places.places import missing_place, unready_place
from ...plan.schema import Experiment, load
from ...results.compare import differences_of, page_of, text_of
from ...results.export import export
from ...results.folder import EXPERIMENT, note, read, store_in
from ...results.page import write_page
from ...run.clock import minutes
from ...run.measure import CALIBRATION
from ...run.runner import Schedule, measure_all, refuse_unfit, schedule

IDENTITY = ("kernel", "machine", "cpus", "cpu_model")
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=FOLDER, help="Folder; goes on there if it was interrupted. Else results/NAME.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="In place of the file's.")
@click.option("--repetitions", type=click.IntRange(1, 1000), help="In place of the file's; more go on.")
@click.option("--anyway", is_flag=True, help="Also where cores are too few or the host is not quiet.")
@click.option("--dry-run", is_flag=True, help="Check the file, and say what would be run.")
def run(
    file: Path,
    out: Path | None,
    seed: int | None,
    repetitions: int | None,
    anyway: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
) -> None:
    """Run an experiment file; what is finished is kept, and the same command goes on."""
    asked = load(file, DRIVERS)
    given = {"seed": seed, "repetitions": repetitions, "cores": asked.cores or len(os.sched_getaffinity(0))}
    wish = asked.model_copy(update={name: value for name, value in given.items() if value is not None})
    found = schedule(wish, DRIVERS, missing_place if dry_run else unready_place)
    _announce(wish, found)
    if dry_run:
        return
    refuse_unfit(wish, found, anyway=anyway)
    needs.check_root()
    needs.check_libraries()
    folder = out or Path("results") / _name_of(file)
    store = store_in(folder)
    known = store.asked()
    if known is not None:
        store.check_options(known, wish)
    host = _same_host(known.host, folder) if known else _host()
    store.belonging_to(known, wish, host)
    note(folder, found.conditions)
    calibration = float(str(host[CALIBRATION]))

    def measure() -> None:
        failed = measure_all(wish, DRIVERS, found, store, calibration, click.echo)
        note(folder, replace(found.conditions, gaps=(*found.conditions.gaps, *failed)))
        if failed:
            _report(folder)
            lines = (f"{EXPERIMENT}: {gap.what}: {gap.why}" for gap in failed)
            raise Refusal(ExitStatus.FAILED, *lines)

    leaving_as_before(EXPERIMENT, folder, measure)
    _report(folder)


@click.command()
@click.argument("folder", type=FOLDER)
def report(folder: Path) -> None:
    """Write the report and the tables of a folder of results anew; nothing is measured."""
    _report(folder)


@click.command("compare")
@click.argument("before", type=FOLDER)
@click.argument("after", type=FOLDER)
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also as a page.")
def compare(before: Path, after: Path, html: Path | None) -> None:
    """What is different in AFTER: each arm of each cell that both have."""
    found = differences_of(read(before), read(after))
    click.echo(text_of(found))
    if html:
        html.write_text(page_of(found), encoding="utf-8")


def _same_host(known: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Refuses to go on with what another one has measured."""
    now = facts.metadata()
    if other := [name for name in IDENTITY if known.get(name) != now[name]]:
        raise Refusal(
            ExitStatus.USAGE,
            f"{EXPERIMENT}: --out: {folder}: of another host ({', '.join(other)}): name another folder",
        )
    return dict(known)


def _host() -> dict[str, object]:
    """What measures, and how fast it is: once, so that an experiment that goes on has the same work."""
    with tempfile.TemporaryDirectory(prefix="dasec-apps-") as folder:
        return {**facts.metadata(), CALIBRATION: calibrate(find_tool(), Path(folder))}


def _announce(wish: Experiment, found: Schedule) -> None:
    cells = dict.fromkeys(block.cell.name for block in found.blocks)
    click.echo(
        f"{wish.title}: {len(cells)} cells, {wish.repetitions} repetitions, arms {', '.join(wish.arms)}:"
        f" {found.runs} runs of {found.run_s:g} s, about {minutes(found.runs * found.run_s)};"
        f" seed {wish.seed}"
    )
    for gap in found.conditions.gaps:
        click.echo(f"not here: {gap.what}: {gap.why}")
    for line in found.conditions.missed:
        click.echo(f"warning: {line}")


def _name_of(file: Path) -> str:
    """`fig7/here.toml` is fig7-here."""
    return f"{file.resolve().parent.name}-{file.stem}"


def _report(folder: Path) -> None:
    results = read(folder)
    page = write_page(results)
    tables = export(results)
    click.echo(f"report: {page}; {', '.join(one.name for one in tables)}")
    if not results.rows:
        raise Refusal(ExitStatus.FAILED, f"{EXPERIMENT}: {folder}: no block is finished yet")
