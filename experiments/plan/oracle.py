"""The arm that is told which threads are critical. Pure; guests import it."""

from __future__ import annotations

from collections.abc import Iterable

ORACLE = "oracle"


def oracle_settings(critical: Iterable[str]) -> str:
    """What the daemon is told: the names of the critical threads."""
    return f'policy = "{ORACLE}"\n[oracle]\ncritical = {sorted(set(critical))}\n'
