"""The suite as a command."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dasec.errors import ExitStatus, Refusal
from dasec.lab.kit import facts, needs

from ...places.ground import leaving_as_before
from ...plan.blocks import blocks_of
from ...plan.cells import Wish, cells_of
from ...results.store import Asked, Store
from ...run.clock import minutes
from .choice import choosing, wish_for
from .publish import publish
from .runner import EXPERIMENT, measure_blocks

QUICK_LOADS = ("fanout", "background", "external", "pipeline")
QUICK = {
    "loads": ",".join(QUICK_LOADS),
    "ratios": "8",
    "utilisations": "0.8",
    "repetitions": 4,
    "seconds": 3.0,
}
"""Under 10 minutes with the usual policies; fewer repetitions than 4 give no verdict (kit/ratios.py)."""

FULL = {"ratios": "1,2,4,8", "utilisations": "0.3,0.5,0.7,0.85,0.95,1.05"}


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--quick", is_flag=True, help=f"Under 10 minutes: {QUICK}.")
@click.option("--full", is_flag=True, help=f"A day for each layout: {FULL}.")
@choosing
@click.option("--records", is_flag=True, help="Keep the daemon's record of every run.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder; goes on there if it was interrupted.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be run, and how long it takes.")
@click.option("--report", "report_only", is_flag=True, help="Only the report of what --out holds.")
def command(out: Path | None, dry_run: bool, report_only: bool, **options: object) -> None:  # noqa: FBT001
    """Loads under policies beside the plain host and an oracle; a report in the --out folder.

    What is finished is kept: the same command with the same --out goes on after an interruption.
    """
    store = Store(out or Path("results") / EXPERIMENT, Wish, EXPERIMENT)
    known = store.asked()
    if report_only:
        if known is None:
            raise Refusal(ExitStatus.USAGE, f"loads: {store.folder}: holds no results: give their folder")
        publish(store, known)
        return
    cores = len(os.sched_getaffinity(0))
    wish = wish_for(_with_preset(options), cores, store, records=bool(options["records"]))
    cells = cells_of(wish)
    blocks = tuple(blocks_of(cells.possible, wish.arms, wish.repetitions, wish.seed))
    runs = len(blocks) * len(wish.arms)
    click.echo(
        f"{len(cells.possible)} cells, {wish.repetitions} repetitions, arms {', '.join(wish.arms)}:"
        f" {runs} runs of {wish.timing.total_s:g} s, about {minutes(runs * wish.run_s)}; seed {wish.seed}"
    )
    for line in cells.impossible:
        click.echo(f"does not exist: {line}")
    if dry_run:
        return
    if not cells.possible:
        raise Refusal(ExitStatus.USAGE, "loads: nothing to run: give other ratios or utilisations")
    needs.check_root()
    needs.check_libraries()
    if known is None:
        known = Asked(wish, facts.metadata())
        store.begin(known)
    for line in facts.warnings(wish.cores):
        click.echo(f"warning: {line}")
    leaving_as_before(EXPERIMENT, store.folder, lambda: measure_blocks(wish, blocks, store, click.echo))
    publish(store, known)


def _with_preset(options: dict[str, object]) -> dict[str, object]:
    """What is given overrides --quick and --full."""
    context = click.get_current_context()
    given = {
        name
        for name in options
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    for preset, values in (("quick", QUICK), ("full", FULL)):
        if options[preset]:
            options = options | {name: value for name, value in values.items() if name not in given}
    return options
