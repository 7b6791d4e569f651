"""What the kernel's own checkers said in a guest, and which of it is about our patches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from guests.counted import COMPLAINTS

KCSAN = "BUG: KCSAN:"
OURS = "dasec_"
"""In the name of every function of the series; the kernel's release has no underscore behind it."""


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
    """The complaints that are not KCSAN's; what else the kernel logged near them is left out."""
    return tuple(line for line in lines if re.search(COMPLAINTS, line) and KCSAN not in line)
