"""The result as text: a line for each situation, how far to trust it, and one sentence to take away."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from rich import box
from rich.console import Console
from rich.table import Table

from ..kit.arms import NONE
from ..kit.driver import DRAIN_S
from ..kit.ratios import CONFIDENCE, Estimate
from ..kit.results import Measured
from .lines import Answer, Line, is_wide

STYLE = {Answer.GAIN: "green", Answer.HARM: "red", Answer.NOTHING: "", Answer.UNTOLD: "yellow"}
STEAL_WORTH_SAYING = 0.01
OTHER_WORTH_SAYING = 0.1
"""Cores; a quiet host with this display needs less."""

NEXT_STEP = "name your workloads in /etc/dasec/dasec.toml and start dasec.service (docs/operations.md)."
"""For somebody who has seen a gain."""


def print_report(console: Console, lines: Sequence[Line], measured: Sequence[Measured]) -> None:
    """Table, notes, and the sentence to take away."""
    console.print(_table(lines))
    for note in notes(lines, measured):
        console.print(note, highlight=False)
    console.print()
    console.print(sentence(lines), style="bold", highlight=False)


def _table(lines: Sequence[Line]) -> Table:
    table = Table(
        title=f"Latency over the plain host's, with its {CONFIDENCE:.0%} interval; below 1 is better",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("situation\npolicy")
    for head in ("busy", "plain host\nmean, p99 ms", "policy\nmean, p99 ms", "mean\nA/A", "p99\nA/A"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("background\ndone", justify="right")
    table.add_column("", min_width=len(Answer.UNTOLD))
    for line in lines:
        style = STYLE[line.answer]
        table.add_row(
            f"{line.situation}\n{line.policy}",
            f"{line.busy:.0%}",
            _two(line.plain_ms),
            _two(line.policy_ms),
            *(
                f"{shown(effect)}\n{shown(noise)}"
                for effect, noise in zip(line.effect, line.noise, strict=True)
            ),
            f"{line.background:.2f}",
            f"[{style}]{line.answer}[/{style}]" if style else str(line.answer),
        )
    return table


def _two(values_ms: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values_ms)


def shown(estimate: Estimate) -> str:
    """`0.48 [0.41, 0.55]`; of too few repetitions there is no interval."""
    if math.isinf(estimate.high):
        return f"{estimate.ratio:.2f}"
    return f"{estimate.ratio:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def sentence(lines: Sequence[Line]) -> str:
    """What this host would gain, and what to do next."""
    first = lines[0]
    share = f"{first.effect[0].ratio:.2f} of the time (p99 {first.effect[1].ratio:.2f})"
    harm = [line for line in lines if line.answer is Answer.HARM]
    if harm:
        where = " and ".join(f'"{line.situation}" with {line.policy}' for line in harm)
        return f"Harm in {where}: leave it off there, and please report this host."
    if first.answer is Answer.GAIN:
        return f"With {first.policy}, requests of busy servers beside background take {share}: {NEXT_STEP}"
    if first.answer is Answer.UNTOLD:
        return f"This host cannot tell: {_why_not(first)}"
    return f"No effect was seen on this host ({share}): nothing speaks for {first.policy} here."


def _why_not(line: Line) -> str:
    if line.is_short:
        return "too few --repetitions."
    if line.failed:
        return f"{line.failed} requests failed, as they should not under any policy."
    unsteady = next(filter(is_wide, line.noise), None)
    wide = unsteady or next(filter(is_wide, line.effect))
    what = (
        "plain runs differ from each other" if unsteady else f"runs with {line.policy} differ from plain ones"
    )
    return f"{what} by {shown(wide)}; try again when nothing else runs here, or with more --repetitions."


def notes(lines: Sequence[Line], measured: Sequence[Measured]) -> Iterator[str]:
    """How far to trust the table, line by line."""
    runs = [run for one in measured for run in one.runs]
    counts = ", ".join(str(one.repetitions) for one in measured)
    yield (
        f"{counts} repetitions, arms interleaved, with the same arrivals; of each the median workload."
        " Hodges-Lehmann estimates, intervals by Wilcoxon's signed ranks. A/A: the plain host against itself."
    )
    for line in lines[1:]:
        if line.answer is Answer.UNTOLD:
            yield f'"{line.situation}" with {line.policy} cannot be told: {_why_not(line)}'
    yield f"The daemon took {fmean(line.daemon_percent for line in lines):.1f} % of a core."
    for one in measured:
        for arm in one.arms:
            yield from _losses(one, arm)
    other = [run.other_cores for run in runs if run.arm == NONE]
    if max(other) > OTHER_WORTH_SAYING:
        yield (
            f"Other work on this host took {fmean(other):.2f} cores on average and {max(other):.2f} in the"
            " worst run: that is noise."
        )
    if thrown_away := sum(one.thrown_away for one in measured):
        yield f"{thrown_away} more runs do not count: the hypervisor hit their blocks, which were made again."
    stolen = max(run.steal for run in runs)
    if stolen > STEAL_WORTH_SAYING:
        yield f"The hypervisor took up to {stolen:.1%} of the CPU time in a run that counts: noise, too."


def _losses(measured: Measured, arm: str) -> Iterator[str]:
    tenants = [tenant for run in measured.of(arm) for tenant in run.tenants]
    late = f"{DRAIN_S:g} s"
    if unfinished := sum(tenant.unfinished for tenant in tenants):
        yield f"{arm}: {unfinished} requests had no answer {late} after the last arrival and count as {late}."
    if errors := sum(tenant.errors for tenant in tenants):
        yield f"{arm}: {errors} requests failed and count as {late}."
