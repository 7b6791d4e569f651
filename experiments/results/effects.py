"""Ratios as tables have them."""

from __future__ import annotations

import math

from dasec.lab.kit.ratios import Estimate


def effect(found: Estimate | None) -> str:
    """A ratio with its interval."""
    if found is None:
        return "–"
    if math.isinf(found.high):
        return short(found.ratio)
    return f"{short(found.ratio)} [{short(found.low)}, {short(found.high)}]"


def short(ratio: float) -> str:
    """Two decimals where they say something."""
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.0f}"


def percent(part: float, decimals: int = 0) -> str:
    """As the pages have it: with a space."""
    return f"{100 * part:.{decimals}f} %"
