"""The suite as a command."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import click

from dasec.demo import facts, needs
from dasec.demo.arms import CONTROL, NONE, arms_for
from dasec.demo.errors import Interrupted
from dasec.demo.layout import Layout
from dasec.demo.signals import interruptible
from dasec.demo.untouched import changes, look
from dasec.exits import ExitStatus, Refusal
from dasec.policy import POLICIES

from .analysis import summarise
from .catalogue import LOADS, STEP
from .cells import Cell, Wish, blocks_of, cells_of
from .plots import draw, draw_settling
from .report import report
from .runner import measure_blocks, minutes
from .settling import Course, courses
from .store import Asked, Store

QUICK_LOADS = ("fanout", "background", "external", "pipeline")
QUICK = {
    "loads": ",".join(QUICK_LOADS),
    "ratios": "8",
    "utilisations": "0.8",
    "repetitions": 4,
    "seconds": 3.0,
}
"""Under 10 minutes with the usual policies; fewer repetitions than 4 give no verdict (demo/statistics.py)."""

FULL = {"ratios": "1,2,4,8", "utilisations": "0.3,0.5,0.7,0.85,0.95,1.05"}


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


def _policies(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in POLICIES and name != "none-again"]
    if unknown:
        raise Refusal(
            ExitStatus.USAGE,
            f"loads: --policies: {', '.join(unknown)}: unknown: known are {', '.join(sorted(POLICIES))}",
        )
    return arms_for(names)


def _layouts(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(map(str, Layout)):
        raise Refusal(ExitStatus.USAGE, f"loads: --layouts: {text}: give flat, vm or both: flat,vm")
    return names


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--quick", is_flag=True, help=f"Under 10 minutes: {QUICK}.")
@click.option("--full", is_flag=True, help=f"A day for each layout: {FULL}.")
@click.option("--loads", default="all", help=f"Of {', '.join(LOADS)}.")
@click.option("--ratios", default="4,8", help="vCPUs a core.")
@click.option("--utilisations", default="0.6,0.85", help="Work asked for a core.")
@click.option("--layouts", default="flat", help="flat (vCPUs side by side), vm (a group a workload).")
@click.option("--policies", default="critical,oracle,dasec", help="Beside none and none-again.")
@click.option("--repetitions", type=click.IntRange(1, 1000), default=8)
@click.option("--seconds", type=click.FloatRange(0.2, 3600), default=5.0, help="Measured part of a run.")
@click.option("--warmup", type=click.FloatRange(0, 600), default=2.0, help="Before it: policies settle.")
@click.option("--lead", type=click.FloatRange(0.1, 60), default=1.0, help="For everything to start.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Of arrivals and orders, else a fresh one.")
@click.option("--blame/--no-blame", default=True, help="Watch who waits for whom, in all arms alike.")
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
    store = Store(out or Path("results") / "loads")
    known = store.asked()
    if report_only:
        if known is None:
            raise Refusal(ExitStatus.USAGE, f"loads: {store.folder}: holds no results: give their folder")
        _write_report(store, known)
        return
    wish = _wish(options, known)
    cells = cells_of(wish)
    blocks = tuple(blocks_of(wish, cells.possible))
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
    _measure(lambda: measure_blocks(wish, blocks, store, click.echo), store)
    _write_report(store, known)


def _wish(options: dict[str, object], known: Asked | None) -> Wish:
    context = click.get_current_context()
    given = {
        name
        for name in options
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    for preset, values in (("quick", QUICK), ("full", FULL)):
        if options[preset]:
            options.update({name: value for name, value in values.items() if name not in given})
    wish = Wish(
        _loads(str(options["loads"])),
        _numbers("ratios", str(options["ratios"]), 1000),
        _numbers("utilisations", str(options["utilisations"]), 2),
        _layouts(str(options["layouts"])),
        _policies(str(options["policies"])),
        int(str(options["repetitions"])),
        float(str(options["seconds"])),
        float(str(options["warmup"])),
        float(str(options["lead"])),
        len(os.sched_getaffinity(0)),
        int(str(options["seed"])) if options["seed"] is not None else secrets.randbelow(2**31),
        bool(options["blame"]),
        bool(options["records"]),
    )
    if known is None:
        return wish
    wish = replace(wish, seed=wish.seed if "seed" in given else known.wish.seed)
    # More repetitions of the same are welcome; anything else would mix what cannot be compared.
    if replace(wish, repetitions=0) != replace(known.wish, repetitions=0):
        other = {name for name, value in asdict(known.wish).items() if asdict(wish)[name] != value}
        raise Refusal(
            ExitStatus.USAGE,
            f"loads: --out: holds results of other options ({', '.join(sorted(other))}): name another folder",
        )
    return wish


def _measure(measure: Callable[[], None], store: Store) -> None:
    before = look()
    try:
        with interruptible():
            measure()
    except Interrupted:
        raise Refusal(
            ExitStatus.FAILED,
            f"loads: interrupted: the host is as before; {store.folder} keeps what was finished:"
            " the same command goes on, --report shows it",
        ) from None
    for line in changes(before, look()):
        click.echo(f"warning: host not as before: {line}")


def _write_report(store: Store, known: Asked) -> None:
    done = store.done()
    cells = cells_of(known.wish)
    found = [summarise(cell, done, known.wish.arms) for cell in cells.possible]
    summaries = [one for one in found if one]
    if not summaries:
        raise Refusal(ExitStatus.FAILED, f"loads: {store.folder}: no block is finished yet")
    pictures = draw(known.wish, summaries, store.folder)
    steps = _courses(known.wish, cells.possible, store)
    if steps:
        pictures = (*pictures, draw_settling(steps, known.wish, store.folder))
    page = store.folder / "report.md"
    text = report(known.wish, summaries, cells.impossible, known.host, pictures, steps)
    page.write_text(text, encoding="utf-8")
    click.echo(f"report: {page}")


def _courses(wish: Wish, cells: Sequence[Cell], store: Store) -> tuple[Course, ...]:
    """What the records of the load `step` tell, where they were kept."""
    arms = [arm for arm in wish.arms if arm not in (NONE, CONTROL)]
    return tuple(
        one
        for cell in cells
        if cell.load == STEP
        for one in courses(store.folder / "records" / cell.name, arms, cell.scenario.tenants[0].critical)
    )


def main() -> None:
    """Run it; a user's mistake is one line and an exit status."""
    try:
        command.main(prog_name="run.py", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(int(ExitStatus.USAGE))
    except click.Abort:
        sys.exit(int(ExitStatus.FAILED))
    except Refusal as refusal:
        for line in refusal.lines:
            click.echo(line, err=True)
        sys.exit(int(refusal.status))
