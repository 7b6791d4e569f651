"""`dasec demo`: the main job on this machine, default and policies interleaved, with a verdict."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from rich.console import Console

from ...config.amount import Amount
from ...errors import ExitStatus, Refusal
from ..kit.layout import GroupLayout

RESULTS = Path("results")
PLAIN_WIDTH = 110
"""Of the tables in a file or a log."""

LEAD_S = 0.8
"""From the first process to the first request; the daemon may need more, and gets it."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), default=RESULTS / "demo.json", help="Raw results."
)
@click.option(
    "--plot", type=click.Path(path_type=Path), default=RESULTS / "demo.png", help="The picture, PNG."
)
@click.option("--seconds", type=Amount(0.1, 3600), default=1.2, help="Measured part of a run.")
@click.option("--warmup", type=Amount(0.1, 60), default=1.0, help="Seconds of load before it.")
@click.option(
    "--repetitions",
    type=click.IntRange(2, 1000),
    help="Runs of each arm; by default 12, 6 and 9.",
)
@click.option(
    "--policies",
    default="critical",
    help="Compared with the plain host; NAME+guard: under the guard.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="Of arrivals and of the order.")
@click.option(
    "--layout",
    type=click.Choice([*map(str, GroupLayout)]),
    help="How cgroups hang together; by default as under libvirt, if this kernel can be judged so.",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    help="For the daemon's record of each run.",
)
def command(
    json_file: Path,
    plot: Path,
    seconds: float,
    warmup: float,
    repetitions: int | None,
    policies: str,
    seed: int,
    layout: str | None,
    records: Path | None,
) -> None:
    """Show what a policy is worth on this machine: where there is something to gain, little, and nothing.

    Leaves the host as it was. Exit status 3 and one line where the host cannot do it.
    """
    from ..kit.errors import said_by

    with said_by("demo"):
        from ..kit import needs

        needs.check_root()
        needs.check_libraries()
        from ..kit.arms import arms_for
        from ..kit.scenario import Timing
        from ..kit.writable import ensure_writable
        from .main_job import Wish, do
        from .situations import situations_for

        wish = Wish(
            situations_for(len(os.sched_getaffinity(0))),
            arms_for(_known(policies)),
            Timing(seconds, warmup, LEAD_S),
            repetitions,
            seed,
            None if layout is None else GroupLayout(layout),
            plot,
            records,
        )
        for path in (json_file, plot, *((records / "probe",) if records else ())):
            ensure_writable(path)
        outcome = do(wish, _console())
        json_file.write_text(json.dumps(outcome.document, indent=1) + "\n", encoding="utf-8")
        click.echo(f"raw results: {json_file}; plot: {plot}")
        if outcome.changed:
            raise Refusal(ExitStatus.FAILED, *(f"host not as before: {line}" for line in outcome.changed))


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)


def _known(policies: str) -> list[str]:
    from ...policies import POLICIES
    from ..kit.arms import GUARDED, NONE

    names = [name.strip() for name in policies.split(",") if name.strip()]
    unknown = [name for name in names if name.removesuffix(GUARDED) not in POLICIES]
    if unknown:
        line = f"--policies: {', '.join(unknown)}: unknown: known are {', '.join(sorted(POLICIES))}"
        raise Refusal(ExitStatus.USAGE, line)
    if not set(names) - {NONE}:
        line = f"--policies: {policies!r}: names nothing beside the plain host: give some, such as critical"
        raise Refusal(ExitStatus.USAGE, line)
    return names
