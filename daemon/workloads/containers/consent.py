"""What a container says itself, by annotations or labels: manage me, with this share, on CPUs of that class.

Whoever may start a container may write them, and an image may bring labels with it. So they are heard only
where the configuration says so, and nobody gives itself more than that allows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...model import CpuWish

PREFIX = "dasec.io/"
ENABLE, SHARE, CPU, CPUS = f"{PREFIX}enable", f"{PREFIX}share", f"{PREFIX}cpu", f"{PREFIX}cpus"
LEAST_SHARE = 2
"""What cgroup v1 takes as cpu.shares (MIN_SHARES in kernel/sched/sched.h)."""

CLASSES = ("shared", "exclusive", "whole")
"""As the configuration's key `cpu` has them."""

_DIGITS = 7
"""More are no share; beyond 4300 Python refuses to read a number."""

_AMOUNT = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")
"""CPUs, to a thousandth, as the configuration's key `cpus` takes them."""


class NotedConsent(NamedTuple):
    """It opts in. `share`: what it asks for, as far as it may (None: what the host gives it). `wish`: of CPUs
    of its own."""

    share: int | None = None
    complaints: tuple[str, ...] = ()
    wish: CpuWish | None = None


def consent(notes: Mapping[str, str], most_share: int, *, may_reserve: bool = False) -> NotedConsent | None:
    """What these annotations or labels say; None: it does not opt in."""
    if notes.get(ENABLE) != "true":
        return None
    share, about_share = _share(notes.get(SHARE), most_share)
    wish, about_cpus = _wish(notes, may_reserve=may_reserve)
    return NotedConsent(share, (*about_share, *about_cpus), wish)


def _share(said: str | None, most_share: int) -> tuple[int | None, tuple[str, ...]]:
    if said is None:
        return None, ()
    if not (said.isascii() and said.isdecimal() and len(said) <= _DIGITS and int(said) >= LEAST_SHARE):
        return None, (f"{SHARE} {said[:20]!r} is no integer from {LEAST_SHARE}: it is ignored",)
    if int(said) > most_share:
        return most_share, (f"{SHARE} {said} is more than [containers] most_share: it gets {most_share}",)
    return int(said), ()


def _wish(notes: Mapping[str, str], *, may_reserve: bool) -> tuple[CpuWish | None, tuple[str, ...]]:
    """Half of a wish is none: how many CPUs somebody meant is not guessed."""
    cpu_class, said = notes.get(CPU), notes.get(CPUS)
    if cpu_class is None and said is None:
        return None, ()
    if not may_reserve:
        return None, (f"{CPU} and {CPUS} are ignored: [containers] most_cpus allows none",)
    if cpu_class not in CLASSES:
        return None, (f"{CPU} {(cpu_class or '')[:20]!r} is none of {', '.join(CLASSES)}: it is ignored",)
    millicores = round(1000 * float(said)) if said is not None and _AMOUNT.fullmatch(said) else 0
    if not millicores:
        what = f"{CPUS} {(said or '')[:20]!r} is no amount of CPUs such as 2.5"
        return None, (f"{what}: {CPU} is ignored",)
    return CpuWish(cpu_class, millicores), ()
