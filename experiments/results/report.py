"""The report as Markdown: tables of verdicts, of shares, of side effects, and how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dasec.lab.kit.arms import CONTROL
from dasec.lab.kit.ratios import CONFIDENCE, geometric_mean

from ..plan.cells import Cell
from ..plan.loads import LOADS
from ..plan.oracle import ORACLE
from ..plan.terms import Terms
from .analysis import JUDGED, SHARE_DOMAIN, SHARE_GOAL, WORTH, Compared, Share, Summary
from .effects import effect
from .markdown import markdown_table
from .sensitivity import PICTURE as SENSITIVITY
from .sensitivity import sensitivity
from .settling import GOAL_PERIODS, Course

PICTURES = {
    "utilisation.png": "Ratio to the plain host against the utilisation that was measured",
    "ratio.png": "Ratio to the plain host against the consolidation ratio",
    "shares.png": "Share of the oracle's gain",
    "blame.png": "Blame against latency",
    "background.png": "Background work done against latency",
    "settling.png": "Weights after the step of `step`",
    SENSITIVITY: "The constants of `critical`",
}


def report(
    terms: Terms,
    summaries: Sequence[Summary[Cell]],
    impossible: Sequence[str],
    host: Mapping[str, object],
    pictures: Iterable[str],
    courses: Sequence[Course] = (),
) -> str:
    """The whole page."""
    lines = [
        "# Loads",
        "",
        f"Kernel {host['kernel']}, {terms.cpus} cores, seed {terms.seed}; {terms.seconds:g} s measured after"
        f" {terms.warmup_s:g} s of warm-up, arms of a repetition interleaved, with the same arrivals.",
        f"Ratios to the plain host of the same repetition, geometric means with {CONFIDENCE:.0%} bootstrap"
        " intervals; latency below 1 is better. `none-again` is the plain host once more: noise.",
        "",
        "## Latency",
        "",
        *_latency_table(terms, summaries),
        "",
        "## Share of the oracle's gain",
        "",
        f"Only where the oracle's ratio is at most {SHARE_DOMAIN}. The goal of {SHARE_GOAL:.0%} counts where"
        f" its mean is at most {WORTH}; elsewhere: mean at most 1.01 and p99 at most 1.03.",
        "",
        *_share_table(terms, summaries),
        *_overall(terms, summaries),
        "",
        "## What else changed",
        "",
        "Sums over all workloads, but `least CPU`: the CPU time of the workload that lost most. `background`:"
        " CPU time of threads that no request waits for. `blame`: time that critical threads were ready while"
        " siblings waited for them.",
        "",
        *_side_table(terms, summaries),
        "",
        *_settling(courses),
        *_sensitivity(terms, summaries),
        "## How far to trust it",
        "",
        *_trust_table(summaries),
        "",
        *(f"- Does not exist: {line}." for line in impossible),
        *(f"- {one.cell.name}, {trouble}" for one in summaries for trouble in one.troubles),
    ]
    for name in pictures:
        lines += ["", f"## {PICTURES[name]}", "", f"![{PICTURES[name]}]({name})"]
    return "\n".join(lines) + "\n"


def _settling(courses: Sequence[Course]) -> Iterator[str]:
    """One line a policy, from the records of the load `step`."""
    if courses:
        yield from ("## After a step", "")
    for arm in dict.fromkeys(one.arm for one in courses):
        found = [one.settled for one in courses if one.arm == arm]
        told = ", ".join("never" if periods is None else str(periods) for periods in found)
        yield f"- {arm}: settled after {told} periods (one number a run; goal: at most {GOAL_PERIODS})."
    if courses:
        yield ""


def _sensitivity(terms: Terms, summaries: Sequence[Summary[Cell]]) -> Iterator[str]:
    tables = list(sensitivity(terms, summaries))
    if tables:
        yield from ("## Constants of critical: mean / p99", "", *tables)


def _policies(terms: Terms) -> list[str]:
    return [arm for arm in terms.arms if arm != "none"]


def _where(summary: Summary[Cell]) -> tuple[str, ...]:
    cell = summary.cell
    prototype = f" ({LOADS[cell.load].prototype})" if cell.load in LOADS else ""
    ratio = f"{cell.scenario.consolidation_ratio:g}"
    return f"{cell.load}{prototype}", ratio, f"{cell.utilisation:g}", cell.layout


MOST_SHOWN = 9.99
"""A share beyond this says only that the oracle's gain may be none."""

WHERE = ("load", "ratio", "utilisation", "layout")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield markdown_table([*WHERE, *headings], rows)


def _latency_table(terms: Terms, summaries: Sequence[Summary[Cell]]) -> Iterator[str]:
    arms = _policies(terms)
    headings = ["none: mean, p99 ms", *(f"{arm}: {metric}" for arm in arms for metric in JUDGED)]
    headings += [f"{arm}: verdict" for arm in arms if arm != CONTROL]
    rows = []
    for one in summaries:
        row = [*_where(one), f"{one.mean_ms:.2f}, {one.p99_ms:.1f}"]
        row += [effect(one.arms[arm].ratios.get(metric)) for arm in arms for metric in JUDGED]
        row += [_verdict(one.arms[arm]) for arm in arms if arm != CONTROL]
        rows.append(row)
    return _table(headings, rows)


def _verdict(one: Compared) -> str:
    return str(one.verdict or "–")


def _share_table(terms: Terms, summaries: Sequence[Summary[Cell]]) -> Iterator[str]:
    arms = [arm for arm in _policies(terms) if arm not in (CONTROL, ORACLE)]
    headings = [f"{arm}: {what}" for arm in arms for what in (*JUDGED, "goal")]
    rows = []
    for one in summaries:
        row = [*_where(one)]
        for arm in arms:
            found = one.arms[arm]
            row += [_share(found.shares.get(metric)) for metric in JUDGED]
            row.append(found.goal)
        rows.append(row)
    return _table(headings, rows)


def _overall(terms: Terms, summaries: Sequence[Summary[Cell]]) -> Iterator[str]:
    """Of each policy the geometric mean over the loads where there is something to gain."""
    for arm in _policies(terms):
        if arm in (CONTROL, ORACLE) or ORACLE not in terms.arms:
            continue
        worth = [
            one
            for one in summaries
            if "mean" in one.arms[ORACLE].ratios and one.arms[ORACLE].ratios["mean"].ratio <= WORTH
        ]
        if worth:
            mine = geometric_mean([one.arms[arm].ratios["mean"].ratio for one in worth])
            best = geometric_mean([one.arms[ORACLE].ratios["mean"].ratio for one in worth])
            yield ""
            yield (
                f"{arm}, geometric mean over the {len(worth)} cells in which the oracle gains 15 % or more:"
                f" {mine:.2f} of the plain host's mean latency, the oracle {best:.2f}:"
                f" {(1 - mine) / (1 - best):.0%} of its gain."
            )


def _side_table(terms: Terms, summaries: Sequence[Summary[Cell]]) -> Iterator[str]:
    names = ("throughput", "background", "blame", "CPU")
    arms = _policies(terms)
    headings = ["arm", *names, "least CPU", "daemon's CPU %"]
    rows = []
    for one in summaries:
        for arm in arms:
            found = one.arms[arm]
            row = [*_where(one), arm, *(effect(found.ratios.get(name)) for name in names)]
            rows.append([*row, f"{found.least_cpu:.2f}", f"{100 * found.daemon_cpu:.2f}"])
    return _table(headings, rows)


def _trust_table(summaries: Sequence[Summary[Cell]]) -> Iterator[str]:
    headings = ["repetitions", "cores busy", "worst A/A mean, p99", "other work, cores", "stolen, worst run"]
    rows = []
    for one in summaries:
        spread = ", ".join(f"{one.spread[metric]:.2f}" for metric in JUDGED if metric in one.spread)
        row = [*_where(one), str(one.repetitions), f"{one.busy:.0%}", spread]
        rows.append([*row, f"{one.other_cores:.2f}", f"{one.steal:.1%}"])
    return _table(headings, rows)


def _share(found: Share | None) -> str:
    if found is None:
        return "–"
    if math.isinf(found.high):
        return f"{found.share:.0%}"
    low, high = (max(-MOST_SHOWN, min(MOST_SHOWN, end)) for end in (found.low, found.high))
    return f"{found.share:.0%} [{low:.0%}, {high:.0%}]"
