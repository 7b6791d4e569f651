"""The tables and the picture of the kept runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...results.kept_cells import Kept

KEPT = Kept(
    Path(__file__).resolve().parent / "results",
    base="no-limit",
    base_name="no limit",
    arms={
        "none": "limit",
        "none-again": "limit again",
        "critical": "limit, `critical`",
        "critical+caps": "limit, `critical` with caps",
    },
    ours="critical+caps",
    plain="none",
)

EACH = replace(
    KEPT,
    results=KEPT.results / "each",
    arms={**KEPT.arms, "critical+caps": "limit, `critical` with loans"},
)
"""The same arms where each vCPU has a quota of its own."""


ONE = replace(
    KEPT,
    results=KEPT.results / "one",
    arms={
        "none": "limit",
        "none-again": "limit again",
        "critical+caps": "limit, `critical` with caps",
        "critical+caps+burst": "and a small burst",
    },
)
"""Arms where one thread serves."""

LONG = replace(ONE, results=KEPT.results / "long")
"""One of its cells for twelve seconds."""


HOST = replace(ONE, results=KEPT.results / "host")
"""The same arms on a real host."""


def publish() -> None:
    """Print and draw them."""
    KEPT.publish(HOST, ONE, LONG, EACH)
