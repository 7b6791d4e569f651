"""What a container says itself, by annotations or labels: manage me, with this share.

Whoever may start a container may write them, and an image may bring labels with it. So they are heard only
where the configuration says so, and nobody gives itself more than that allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PREFIX = "dasec.io/"
ENABLE, SHARE = f"{PREFIX}enable", f"{PREFIX}share"
LEAST_SHARE = 2
"""What cgroup v1 takes as cpu.shares (MIN_SHARES in kernel/sched/sched.h)."""

_DIGITS = 7
"""More are no share; beyond 4300 Python refuses to read a number."""


class NotedConsent(NamedTuple):
    """It opts in. `share`: what it asks for, as far as it may (None: what the host gives it)."""

    share: int | None = None
    complaints: tuple[str, ...] = ()


def consent(notes: Mapping[str, str], most_share: int) -> NotedConsent | None:
    """What these annotations or labels say; None: it does not opt in."""
    if notes.get(ENABLE) != "true":
        return None
    said = notes.get(SHARE)
    if said is None:
        return NotedConsent()
    if not (said.isascii() and said.isdecimal() and len(said) <= _DIGITS and int(said) >= LEAST_SHARE):
        return NotedConsent(None, (f"{SHARE} {said[:20]!r} is no integer from {LEAST_SHARE}: it is ignored",))
    if int(said) > most_share:
        return NotedConsent(
            most_share, (f"{SHARE} {said} is more than [containers] most_share: it gets {most_share}",)
        )
    return NotedConsent(int(said))
