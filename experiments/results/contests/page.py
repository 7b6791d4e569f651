"""The result as a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dasec.lab.kit.ratios import Estimate

from ...plan.contests import CONTESTS, Contests
from .analysis import ALLOWED, Entitled

HEAD = """| layout | contest | workload | n | entitled | none | A/A | critical / none | critical / due | 2 % |
|---|---|---|---|---|---|---|---|---|---|
"""


def page(found: Sequence[Entitled], asked: Contests, host: Mapping[str, object], plot: str) -> str:
    """What each workload got, with everything that is needed to judge it."""
    rows = "".join(_row(one) for one in found)
    about = "".join(f"- `{name}`: {contest.about}\n" for name, contest in CONTESTS.items())
    machine = ", ".join(f"{key} {value}" for key, value in host.items())
    seats = "each thread pinned to a core" if asked.pinned else "threads where the kernel puts them"
    return (
        "# Fairness between workloads\n\n"
        "CPU time under `critical` as ratio to the plain host and to what is due, geometric mean and 95 %"
        " interval. *Entitled*: cores by neutral weights. *Due*: that, or what the plain host gives where it"
        f" is less. Who keeps less than {1 - ALLOWED:.2f} of that by the whole interval has LOST. A/A is the"
        " plain host beside itself."
        f"\n\n{HEAD}{rows}\n![ratios]({plot})\n\n{about}\n"
        f'{asked.cpus} cores, {seats}, `fairness = "{asked.fairness}"`,'
        f" {asked.timing.seconds:g} s after {asked.timing.warmup_s:g} s,"
        f" seed {asked.seed}\n\n{machine}\n"
    )


def _row(one: Entitled) -> str:
    cells = (
        one.layout,
        f"`{one.contest}`",
        one.workload,
        str(one.repetitions),
        "–" if one.entitlement is None else f"{one.entitlement:.3f}",
        f"{one.cores:.3f}",
        _interval(one.control),
        _interval(one.policy),
        _interval(one.due),
        str(one.kept),
    )
    return f"| {' | '.join(cells)} |\n"


def _interval(of: Estimate) -> str:
    """Of too few repetitions there is none."""
    if math.isinf(of.high):
        return f"{of.ratio:.3f}"
    return f"{of.ratio:.3f} ({of.low:.3f}–{of.high:.3f})"
