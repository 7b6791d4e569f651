"""`dasec bench overhead`: arguments and output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ...config.amount import Amount
from ...errors import ExitStatus, Refusal
from ...policies import POLICIES
from ..kit.errors import ended_by_signals, said_by
from ..kit.needs import check_libraries
from ..kit.writable import ensure_writable
from .overhead import PERIOD_S, Overhead, measure

DEFAULT_PERIODS = 250
"""20 s: enough for two periods beyond the 99th percentile."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--vcpus", type=click.IntRange(2, 16384), default=256, show_default=True, help="How many threads."
)
@click.option(
    "--active",
    type=Amount(0, 1, min_open=True, max_open=True),
    help="Fraction of the vCPUs that run in a period. Default: what bursts of 0.5 ms give at 30 % load.",
)
@click.option(
    "--periods",
    type=click.IntRange(min=10),
    default=DEFAULT_PERIODS,
    show_default=True,
    help=f"How many periods of {PERIOD_S * 1000:g} ms to measure.",
)
@click.option(
    "--policy", type=click.Choice(sorted(POLICIES)), default="dasec", show_default=True, help="What decides."
)
@click.option(
    "--budget",
    type=Amount(0.1, 100),
    help="What the daemon may take, in percent of one core (budget_percent). Default: its own.",
)
@click.option(
    "--fan-out",
    is_flag=True,
    help="Half of each workload serves requests together: wake-ups among siblings, and weights to write.",
)
@click.option("--sweep", metavar="N,N,…", help="Measure each of these sizes instead of --vcpus.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Write a PNG, and its JSON beside it."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    vcpus: int,
    active: float | None,
    periods: int,
    policy: str,
    budget: float | None,
    fan_out: bool,
    sweep: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Measure what looking costs, with real threads and the real daemon.

    The host is kept about 30 % busy; as root, weights (own groups), slices and affinities are
    really written, to the benchmark's own threads only. Without root the daemon runs dry.
    """
    if plot is not None:
        with said_by("bench overhead --plot"):
            check_libraries(("matplotlib",))
        ensure_writable(plot)
    results = []
    for size in [vcpus] if sweep is None else sizes(sweep):
        with said_by("bench overhead"), ended_by_signals():
            results.append(measure(size, periods, active, policy, budget, fan_out=fan_out))
        if not as_json:
            click.echo(line(results[-1]))
    if plot is not None:
        from .plot import draw

        draw(results, plot)
        plot.with_suffix(".json").write_text(rendered(results) + "\n", encoding="utf-8")
    if as_json:
        click.echo(rendered(results[0] if sweep is None else results))


def sizes(text: str) -> list[int]:
    """The sizes of a sweep."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(2 <= size <= 16384 for size in found):
        raise Refusal(ExitStatus.USAGE, f"--sweep: {text!r}: give numbers from 2 to 16384 such as 16,256")
    return found


def rendered(results: Overhead | Sequence[Overhead]) -> str:
    """As JSON: one object, or a list of them."""
    plain = asdict(results) if isinstance(results, Overhead) else [asdict(result) for result in results]
    return json.dumps(plain, indent=2)


def line(result: Overhead) -> str:
    """One result for a person."""
    stages = ", ".join(f"{stage} {mean:.0f}" for stage, mean in result.stage_mean_us.items())
    return (
        f"{result.vcpus} vCPUs in {result.workloads} workloads, {100 * result.active_fraction:.0f} % active:"
        f" {result.cpu_percent_of_one_core:.2f} % of one core,"
        f" period mean {result.period_mean_ms:.2f} ms, p99 {result.period_p99_ms:.2f} ms,"
        f" a look every {result.look_every_ms:.0f} ms,"
        f" RSS {result.rss_mib:.0f} MiB (keeper {result.keeper_rss_mib:.0f}),"
        f" late {result.late_periods}; stages in us: {stages}"
    )
