"""What a machine was found to be like, against what it should be. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .cpus import Cpus
from .speed import TURN

SPREAD_BOUND = 0.02
"""Between the fastest and the slowest CPU. A round of turns is 0.05 % of 20 ms, ticks are as much again."""

SPEED_UP_BOUND = 0.98
"""Of the number of CPUs."""

ROUNDS_BOUND = 3.0
"""A woken thread, and a busy CPU, waits for the turns of the others: one round, and the kernel's own path."""

CAPACITY_BOUND = 0.97
"""Of what the CPUs can do, what threads that never sleep get done; ticks take the rest."""

ITERATION_INSTRUCTIONS = 206
"""Of the probe's work: 200 NOPs, and in `balance` a count in memory, a load and a branch."""

BALANCE_S = 0.5
WINDOWS = tuple(f"two a CPU, {number}" for number in (1, 2, 3, 4))

PARTS = ("first", "last", "half", "all")
SPEED, WAKE, GAP, BALANCE = "speed", "wake", "gap", "balance"


@dataclass(frozen=True, slots=True)
class Told:
    """One line of the probe."""

    kind: str
    what: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """What one guest said."""

    cpus: Cpus
    told: tuple[Told, ...]
    repeated: bool
    """A second run said the same, byte by byte."""
    host_s: float
    """How long both runs took the host, side by side where it had the cores."""

    @property
    def name(self) -> str:
        """How many CPUs, and what is unusual about them."""
        turn = f", turns of {self.cpus.turn}" if self.cpus.turn != TURN else ""
        return f"{self.cpus.services}{turn}{', ' if self.cpus.topology else ''}{self.cpus.topology}"

    def values(self, kind: str, what: str) -> tuple[int, ...]:
        """Of one line."""
        return next(one.values for one in self.told if (one.kind, one.what) == (kind, what))

    @property
    def work_ns(self) -> float:
        """Of the equal work on one CPU while the others idle."""
        return statistics.mean((*self.values(SPEED, "first"), *self.values(SPEED, "last")))

    @property
    def spread(self) -> float:
        """Between the longest and the shortest time of equal work, however many are busy, over their mean."""
        times = [time for part in PARTS for time in self.values(SPEED, part)]
        return (max(times) - min(times)) / statistics.mean(times)

    @property
    def speed_up(self) -> float:
        """Of all CPUs busy over one."""
        return sum(self.work_ns / time for time in self.values(SPEED, "all"))

    @property
    def wakes_us(self) -> tuple[float, ...]:
        """All of them."""
        return tuple(ns / 1e3 for one in self.told if one.kind == WAKE for ns in one.values)

    @property
    def gap_us(self) -> float:
        """The middle one of a busy CPU, of all CPUs the longest."""
        return max(self.values(GAP, "middle")) / 1e3

    @property
    def longest_gap_us(self) -> float:
        """Ticks and the kernel's own threads are in it."""
        return max(self.values(GAP, "longest")) / 1e3

    @property
    def shares(self) -> tuple[float, ...]:
        """Of each thread of two a CPU, what it got of its due once the kernel had time to move them."""
        return shares_of(self.values(BALANCE, WINDOWS[-1]))

    @property
    def capacity(self) -> float:
        """Used by these threads."""
        done = sum(sum(self.values(BALANCE, window)) for window in WINDOWS) * ITERATION_INSTRUCTIONS
        return done / (self.cpus.services * self.cpus.mips_each * 1e6 * BALANCE_S * len(WINDOWS))

    @property
    def jains(self) -> tuple[float, ...]:
        """Of each half second."""
        return tuple(jain(self.values(BALANCE, window)) for window in WINDOWS)

    @property
    def failures(self) -> tuple[str, ...]:
        """What is not as it should be, in a line each."""
        return tuple(self._failures())

    def _failures(self) -> Iterator[str]:
        services, rounds_us = self.cpus.services, ROUNDS_BOUND * self.cpus.round_us
        mean_us = statistics.mean(self.wakes_us)
        if self.spread > SPREAD_BOUND:
            yield f"speeds differ by {self.spread:.2%}"
        if self.speed_up < SPEED_UP_BOUND * services:
            yield f"{services} CPUs are as fast as {self.speed_up:.2f}"
        if mean_us > rounds_us:
            yield f"a wake-up takes {mean_us:.1f} us"
        if self.gap_us > rounds_us:
            yield f"a busy CPU stops for {self.gap_us:.1f} us"
        if self.capacity < CAPACITY_BOUND:
            yield f"busy threads use {self.capacity:.1%} of the CPUs"
        if not self.repeated:
            yield "a second run said something else"


def shares_of(done: Sequence[int]) -> tuple[float, ...]:
    """Of what is due to each."""
    due = sum(done) / len(done)
    return tuple(one / due for one in done)


def jain(done: Sequence[int]) -> float:
    """1: all the same; 1/n: one has all."""
    shares = shares_of(done)
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that this part of them does not exceed."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


COLUMNS = (
    *("CPUs", "speed, spread", "speed-up", "wake-up mean / p99 µs", "gap middle / longest µs"),
    *("2 threads a CPU: share", "Jain, half seconds 1 to 4", "capacity", "repeats", "host s"),
)


def table(found: Sequence[Validation]) -> str:
    """In Markdown, a line for each machine."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(_row(one)) + " |" for one in found)])


def _row(one: Validation) -> tuple[str, ...]:
    return (
        one.name,
        f"{one.spread:.2%}",
        f"{one.speed_up:.2f}",
        f"{statistics.mean(one.wakes_us):.1f} / {quantile(one.wakes_us, 0.99):.1f}",
        f"{one.gap_us:.1f} / {one.longest_gap_us:.0f}",
        f"{min(one.shares):.2f}–{max(one.shares):.2f}",
        " ".join(f"{fairness:.3f}" for fairness in one.jains),
        f"{one.capacity:.3f}",
        "yes" if one.repeated else "no",
        f"{one.host_s:.0f}",
    )


def plain(one: Validation) -> Mapping[str, object]:
    """For a file: the raw values and what follows from them."""
    return {
        "cpus": one.cpus.services,
        "mips_each": one.cpus.mips_each,
        "turn": one.cpus.turn,
        "spread": one.spread,
        "speed_up": one.speed_up,
        "jains": one.jains,
        "capacity": one.capacity,
        "repeated": one.repeated,
        "failures": one.failures,
        "raw": [[line.kind, line.what, line.values] for line in one.told],
    }
