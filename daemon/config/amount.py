"""A number that is told on the command line."""

from __future__ import annotations

import math

import click


class Amount(click.FloatRange):
    """A number in a range. Comparing lets `nan` through."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Fails for what is no number, or out of range."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number
