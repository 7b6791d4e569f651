"""How soon weights follow a step of the load, from the daemon's records (`records = true`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, cast

from dasec.critical.names import matches
from dasec.lab.kit.ratios import geometric_mean

SETTLED = 0.5
"""Settled is who has come half of the way, in logarithms, from even weights to the ratio at the end; then
a dead band of 20 % moves it about."""

GOAL_PERIODS = 25
"""So soon a policy should have settled (the project's goal for `critical`)."""

PERIOD_NS = 80_000_000
"""A look may be of several periods (docs/decisions/0023-cost-budget.md)."""

BURST_NS = 5_000_000
"""Background has begun in the period in which it computed this long: half a burst."""


@dataclass(frozen=True, slots=True)
class Course:
    """The weight of the critical over that of the others, in each period from the step on."""

    arm: str
    ratios: tuple[float, ...]

    @property
    def settled(self) -> int | None:
        """The period, counted from the step, from which on the ratio is near enough to that at the end."""
        if not self.ratios or self.ratios[-1] <= 1:
            return None
        enough = self.ratios[-1] ** SETTLED
        off = [number for number, ratio in enumerate(self.ratios) if ratio < enough]
        return off[-1] + 1 if off else 0


class _Workload(TypedDict):
    vcpus: list[tuple[int, int, int, str, str]]


class _Line(TypedDict, total=False):
    """What is looked at in a line of the record (docs/record.md)."""

    dasec_record: int
    length_ns: int
    workloads: list[_Workload]
    knobs: list[tuple[int, tuple[int | None, int | None, object] | None]]
    usage: list[tuple[int, int]]


@dataclass(slots=True)
class _Read:
    """What the lines so far said: names and weights by number, and whether background has begun."""

    names: Sequence[str] = ()
    weights: dict[int, int] = field(default_factory=dict)
    begun: bool = False

    def take(self, line: _Line, critical: Sequence[str]) -> bool:
        """One line; False when workloads come or go: the run is over."""
        if "workloads" in line:
            if self.names:
                return False
            self.names = [vcpu[3] for workload in line["workloads"] for vcpu in workload["vcpus"]]
        for number, knobs in line.get("knobs", []):
            if knobs and knobs[0]:
                self.weights[number] = knobs[0]
        for number, consumed_ns, *_ in line.get("usage", []):
            if not _is_critical(self.names[number], critical):
                self.begun |= consumed_ns >= BURST_NS
        return True

    def ratio(self, critical: Sequence[str]) -> float:
        """The critical over the others, geometric means."""
        sides: tuple[list[float], list[float]] = ([], [])
        for number, weight in self.weights.items():
            sides[_is_critical(self.names[number], critical)].append(weight)
        others, preferred = sides
        return geometric_mean(preferred) / geometric_mean(others) if others and preferred else 1.0


def _is_critical(name: str, critical: Sequence[str]) -> bool:
    return any(matches(pattern, name) for pattern in critical)


def course(record: Path, arm: str, critical: Sequence[str]) -> Course:
    """What a record of one run tells."""
    read, ratios = _Read(), list[float]()
    for text in record.read_text(encoding="utf-8").splitlines():
        line = cast(_Line, json.loads(text))
        if "dasec_record" in line:
            continue
        if not read.take(line, critical):
            break
        if read.begun:
            looked_after = max(1, round(line.get("length_ns", PERIOD_NS) / PERIOD_NS))
            ratios += [read.ratio(critical)] * looked_after
    return Course(arm, tuple(ratios))


def courses(folder: Path, arms: Sequence[str], critical: Sequence[str]) -> tuple[Course, ...]:
    """Those of all runs of a cell whose records were kept."""
    return tuple(
        course(record, arm, critical) for arm in arms for record in sorted(folder.glob(f"*-{arm}.jsonl"))
    )
