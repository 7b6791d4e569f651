"""May weights be written below a group of a workload's own? What trying found decides; pure.

Where the kernel starves groups by re-weighting them, it does so without us. Our weights make it worse there:
the load of a group on a CPU is the sum of the weights in it, so a range of 20 : 1 among its vCPUs makes its
own weight jump by as much with each wake-up. In groups beside each other each has one thread, so the kernel
re-weights hardly ever, and weights gain as elsewhere (docs/decisions/0040-reweighting.md).
"""

from __future__ import annotations

from typing import NamedTuple

from . import surroundings
from .reweight import Duel

_SPARED = "no weight is written below a group of a workload's own (`weights` in [host])"


class Nesting(NamedTuple):
    """Whether they may, and what to say of it."""

    works: bool = True
    warnings: tuple[str, ...] = ()


def nesting_of(tried: Duel | str, release: str) -> Nesting:
    """From what was tried, or why nothing could be; only in doubt does the version say."""
    suspect = surroundings.reweight_suspect(release)
    known = f"Linux {release} may starve groups when it re-weights one (6d71a9c61604, reverted in 6.18.45)"
    if isinstance(tried, Duel) and tried.starves:
        got = f"one of two groups got {tried.starved_ns / 1e6:.0f} ms of a CPU while the other waited"
        return Nesting(False, (f"this kernel starves groups when it re-weights one: {got}: {_SPARED}",))
    if not suspect:
        return Nesting()
    if isinstance(tried, Duel) and tried.tells:
        return Nesting(True, (f"{known}; tried: it does not here",))
    why = tried if isinstance(tried, str) else "the host is too busy to try"
    return Nesting(False, (f"{known}; {why}: {_SPARED}",))
