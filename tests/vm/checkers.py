"""What the kernel's own checkers said in a guest, and which of it is about our patches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

KCSAN = "BUG: KCSAN:"
OURS = "dasec"
"""In the name of every function of the series, so in each stack that one of them is on."""


def alive(console: str) -> dict[str, str]:
    """Each checker that was still at work at the end, and what it said of itself."""
    said = re.findall(r"^GUEST-CHECKER:(\w+) +(.*)$", console, re.MULTILINE)
    return {f"{name} {what.split(':')[0]}": what.split(":")[-1].strip() for name, what in said}


def complaints(console: str) -> tuple[str, ...]:
    """All that the kernel complained of, from before the first job to after the last."""
    return tuple(re.findall(r"^GUEST-LOG:(.*)$", console, re.MULTILINE))


def races(lines: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """The reports of KCSAN, one by one, each up to the line of `=` that ends it."""
    report: list[str] = []
    for line in lines:
        if KCSAN in line:
            report = [line]
        elif report and "=====" in line:
            yield tuple(report)
            report = []
        elif report:
            report.append(line)
    if report:
        yield tuple(report)


def races_of_ours(lines: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """The reports with one of our functions on a stack; the others are races of the kernel that we patch."""
    return tuple(report for report in races(lines) if any(OURS in line for line in report))


def other_than_races(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that are no part of a report of KCSAN."""
    kept: list[str] = []
    inside = False
    for line in lines:
        if KCSAN in line:
            inside = True
        elif inside and "=====" in line:
            inside = False
        elif not inside and "=====" not in line:
            kept.append(line)
    return tuple(kept)
