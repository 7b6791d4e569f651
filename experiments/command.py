"""Experiments from a shell: python -m experiments run|report|compare|check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit.writable import ensure_writable

from .plan.file import Told, refusal, told_in
from .results.compare import differences_of, page_of, text_of
from .results.store import ASKED, asked_in
from .run import applications, planned
from .run.alone import PROBE, alone_in
from .run.family import Family, Ways
from .studies.bare import guests as bare
from .studies.publish import PUBLISHED, publish_study
from .studies.vms import guests as vms

FAMILIES: Sequence[Family] = (applications, planned, bare, vms)

HELP = {"help_option_names": ["-h", "--help"], "show_default": True}
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
SET = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="In place of the file's: repetitions=8."
)
GUESTS = click.option(
    "--guests", type=click.IntRange(min=1), default=2, help="Counted ones at a time, a core of the host each."
)


@click.group(context_settings=HELP)
def command() -> None:
    """Measures what a TOML file asks for, and makes tables and pictures of it."""


@command.command()
@click.argument("file", type=FILE)
@SET
@click.option("--out", type=FOLDER, help="Folder; goes on there if it was interrupted. [default: results/…]")
@GUESTS
@click.option("--anyway", is_flag=True, help="Also where cores are too few or the host is not quiet.")
def run(file: Path, settings: tuple[str, ...], out: Path | None, guests: int, anyway: bool) -> None:  # noqa: FBT001
    """Run an experiment, and report it. What is finished is kept: the same command goes on."""
    told = told_in(file, settings)
    family, folder = _of(told, file), out or Path("results") / _name_of(file)
    with alone_in(folder):
        family.run(told, file, folder, Ways(guests, anyway))


@command.command()
@click.argument("file", type=FILE)
@SET
@GUESTS
def check(file: Path, settings: tuple[str, ...], guests: int) -> None:
    """Is the file right, what would be run, and what is missing here? Nothing is run."""
    told = told_in(file, settings)
    lacking = _of(told, file).check(told, file, Ways(guests))
    if lacking:
        raise Refusal(ExitStatus.HOST, *(f"missing here: {line}" for line in lacking))


@command.command()
@click.argument("folder", type=FOLDER)
def report(folder: Path) -> None:
    """Make tables and pictures of a folder of results, or of a study's kept runs; nothing is measured."""
    if (folder / PUBLISHED).is_file():
        publish_study(folder.resolve().name)
        return
    told = _told_of(folder)
    ensure_writable(folder / PROBE)
    _of(told, folder).report(told, folder)


@command.command()
@click.argument("before", type=FOLDER)
@click.argument("after", type=FOLDER)
@click.option("--html", type=FILE, help="Also as a page.")
def compare(before: Path, after: Path, html: Path | None) -> None:
    """What is different in AFTER: each arm of each cell that both have."""
    asked = [(_told_of(folder), folder) for folder in (before, after)]
    if html:
        ensure_writable(html)
    found = differences_of(*(_of(told, folder).side(told, folder) for told, folder in asked))
    click.echo(text_of(found))
    if html:
        html.write_text(page_of(found), encoding="utf-8")


def _of(told: Told, where: Path) -> Family:
    """What knows such experiments."""
    for family in FAMILIES:
        if any(key in told for key in family.KEYS):
            return family
    keys = ", ".join(key for family in FAMILIES for key in family.KEYS)
    raise refusal(where, [f"has no loads: give one of the keys {keys}"])


def _told_of(folder: Path) -> Told:
    told = asked_in(folder)
    if told is None:
        raise Refusal(ExitStatus.USAGE, f"{folder}: has no {ASKED}: give a folder of results")
    return told


def _name_of(file: Path) -> str:
    """`fig7/here.toml` is fig7-here."""
    return f"{file.resolve().parent.name}-{file.stem}"
