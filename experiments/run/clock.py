"""How long it will still take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Clock:
    """How much is left, by what the runs so far took."""

    runs_left: int
    guess_s: float
    runs: int = 0
    spent_s: float = 0.0

    def add(self, spent_s: float, runs: int) -> None:
        """So many runs are over."""
        self.spent_s += spent_s
        self.runs += runs
        self.runs_left -= runs

    @property
    def left_s(self) -> float:
        """The guess counts like five runs."""
        run_s = (self.spent_s + 5 * self.guess_s) / (self.runs + 5)
        return self.runs_left * run_s


def minutes(seconds: float) -> str:
    """For people."""
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
