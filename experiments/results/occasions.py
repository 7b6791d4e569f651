"""How many vCPUs of a workload wait while others are ready (the paper's Figure 3), from the daemon's records.

An occasion is a workload at a look of the daemon with a vCPU that is ready, not on a core, and at least one
that is neither ready nor running. The paper samples the same; like it, this cannot tell whether who sleeps
waits for a ready sibling or for a request.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from dasec.critical.names import matches

READY, RUNNING = "ready", "running"
NAME = 3
"""In what the record says of a vCPU."""


class _Workload(TypedDict):
    name: str
    vcpus: list[list[object]]


class _Line(TypedDict, total=False):
    """What is looked at in a line of the record (docs/record.md)."""

    workloads: list[_Workload]
    usage: list[list[object]]


@dataclass(frozen=True, slots=True)
class Occasions:
    """How often so many vCPUs waited while at least one was ready."""

    counts: Mapping[int, int]
    looks: int
    """At all workloads, occasions or not."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        """Waiting vCPUs at an occasion. ZeroDivisionError if there was none."""
        return sum(waiting * count for waiting, count in self.counts.items()) / self.total

    def more_than(self, waiting: int) -> float:
        """The part of the occasions with more waiting than that. ZeroDivisionError if there was none."""
        return sum(count for number, count in self.counts.items() if number > waiting) / self.total

    def cumulative(self) -> tuple[tuple[int, float], ...]:
        """For each number of waiting vCPUs the part of the occasions with at most so many."""
        found, so_far = [], 0
        for waiting in range(max(self.counts, default=0) + 1):
            so_far += self.counts.get(waiting, 0)
            found.append((waiting, so_far / self.total if self.total else 0.0))
        return tuple(found)


def occasions(
    records: Iterable[Path], instances: frozenset[str], names: Sequence[str] | None = None
) -> Occasions:
    """Of the workloads of these instances, in these records; with `names` (patterns) only where one of the
    ready vCPUs is called so."""
    counts: Counter[int] = Counter()
    looks = 0
    for record in records:
        workloads: list[_Workload] = []
        for text in record.read_text(encoding="utf-8").splitlines():
            line = _line(text)
            workloads = line.get("workloads", workloads)
            if "usage" not in line:
                continue
            for waiting, ready in _states(workloads, line["usage"], instances, names):
                looks += 1
                if ready and waiting:
                    counts[waiting] += 1
    return Occasions(dict(counts), looks)


def _line(text: str) -> _Line:
    """A killed daemon leaves a last line cut short."""
    try:
        return cast(_Line, json.loads(text))
    except ValueError:
        return {}


def _states(
    workloads: list[_Workload],
    usage: list[list[object]],
    instances: frozenset[str],
    names: Sequence[str] | None,
) -> Iterable[tuple[int, int]]:
    """Of each workload how many vCPUs wait, and how many are ready, of those called so."""
    states = {row[0]: row[4] for row in usage}
    first = 0
    for workload in workloads:
        numbers = range(first, first + len(workload["vcpus"]))
        first = numbers.stop
        if workload["name"] in instances:
            found = [states.get(number) for number in numbers]
            ready = [vcpu for vcpu, state in zip(workload["vcpus"], found, strict=True) if state == READY]
            asked = ready if names is None else [vcpu for vcpu in ready if _called(vcpu, names)]
            yield len(found) - len(ready) - found.count(RUNNING), len(asked)


def _called(vcpu: list[object], names: Sequence[str]) -> bool:
    return any(matches(pattern, str(vcpu[NAME])) for pattern in names)
