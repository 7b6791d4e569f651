"""Numbers as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping


def finite(value: object) -> object:
    """The same, with null for what has no end: JSON knows no infinity, and its readers stop at one."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
