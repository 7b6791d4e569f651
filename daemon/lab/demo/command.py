"""`dasec demo`: the main job on this machine, default and policies interleaved, with a verdict."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
from rich.console import Console

from ...errors import ExitStatus, Refusal
from .layout import Layout
from .scenario import WARMUP_S

RESULTS = Path("results")
PLAIN_WIDTH = 100
"""Of the tables in a file or a log."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), default=RESULTS / "demo.json", help="Raw results."
)
@click.option(
    "--plot", type=click.Path(path_type=Path), default=RESULTS / "demo.png", help="The picture, PNG."
)
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=5.0, help="Measured part of a run.")
@click.option("--warmup", type=click.FloatRange(0.1, 60), default=WARMUP_S, help="Seconds of load before it.")
@click.option("--repetitions", type=click.IntRange(2, 1000), default=5, help="Runs of each arm.")
@click.option(
    "--policies",
    default="dasec,critical,static",
    help="Compared with the plain host; NAME+guard: under the guard.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="Of arrivals and of the order.")
@click.option(
    "--layout",
    type=click.Choice([*map(str, Layout)]),
    default=str(Layout.VM),
    help="How cgroups hang together.",
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
    repetitions: int,
    policies: str,
    seed: int,
    layout: str,
    records: Path | None,
) -> None:
    """Compare policies with the plain host on consolidated real workloads, on this machine.

    Leaves the host as it was. Exit status 3 and one line where the host cannot do it.
    """
    from . import needs

    needs.check_root()
    needs.check_libraries()
    from .arms import CONTROL, NONE, arms_for, settings_of
    from .main_job import Wish, do
    from .run import Plan
    from .scenario import Timing, scenario_for

    scenario = scenario_for(len(os.sched_getaffinity(0)))
    arms = arms_for(_known(policies))
    settings = {arm: settings_of(arm) for arm in arms if arm not in (NONE, CONTROL)}
    plan = Plan(scenario, Layout(layout), Timing(seconds, warmup), arms, repetitions, seed, settings)
    for path in (json_file, plot, *((records / "probe",) if records else ())):
        _ensure_writable(path)
    outcome = do(Wish(plan, plot, records), _console())
    json_file.write_text(json.dumps(outcome.document, indent=1) + "\n", encoding="utf-8")
    click.echo(f"raw results: {json_file}; plot: {plot}")
    if outcome.changed:
        raise Refusal(ExitStatus.FAILED, *(f"demo: host not as before: {line}" for line in outcome.changed))


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)


def _known(policies: str) -> list[str]:
    from ...policies import POLICIES
    from .arms import GUARDED

    names = [name.strip() for name in policies.split(",") if name.strip()]
    unknown = [name for name in names if name.removesuffix(GUARDED) not in POLICIES]
    if unknown:
        line = f"demo: --policies: {', '.join(unknown)}: unknown: known are {', '.join(sorted(POLICIES))}"
        raise Refusal(ExitStatus.USAGE, line)
    return names


def _ensure_writable(path: Path) -> None:
    existed = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise Refusal(ExitStatus.USAGE, f"demo: {path}: {error.strerror}: name another place") from error
