"""Compare and put back one knob."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import NamedTuple

from ..knobs.knob import KnobRef, NativeValue
from ..linux import cpulist
from ..linux.errors import NotFair, ThreadGone
from .journal.ledger import Outstanding
from .kernel import Kernel

_LOOKS = 3
"""How often a knob that reads like nobody's is looked at, as long as it reads differently each time."""

_PAUSES_S = (0.0, 0.001, 0.01)
"""Before each look at what was written. Whoever changes a cpuset may be held up after the kernel has taken
its CPUs, before the threads' masks are cut to them (6.1, kernel/cgroup/cpuset.c, update_tasks_cpumask)."""


class Fate(StrEnum):
    """What became of a knob, or of a group of ours."""

    PUT_BACK = "put back"
    ALREADY = "already as it was"
    LEFT_ALONE = "left alone"
    VANISHED = "vanished"
    FAILED = "failed"
    WAITING = "held until it is fair again"


OPEN = frozenset({Fate.FAILED, Fate.WAITING})
"""The knob may still hold a value of ours, and stays in the journal."""


class KnobFate(NamedTuple):
    """One knob and what became of it."""

    ref: KnobRef
    fate: Fate
    detail: str = ""


def judge(one: Outstanding, kernel: Kernel) -> KnobFate:
    """Write the prior value if the kernel still holds one of ours. Never raises.

    A mask that is cut by its cpuset may read the same with ours as with the prior, or as with one that
    somebody else has set. What was asked for cannot be read, so it counts as ours: if it is not, the prior
    is in force already, or somebody chose exactly what was left of ours.
    """
    try:
        return _compare_and_write(one, kernel)
    except ThreadGone:
        return KnobFate(one.ref, Fate.VANISHED)
    except NotFair:
        return KnobFate(one.ref, Fate.WAITING, f"{one.ref}: {Fate.WAITING}")
    except Exception as error:  # whatever is wrong with one knob: the others are still to be put back
        return KnobFate(one.ref, Fate.FAILED, f"{one.ref}: {error or type(error).__name__}")


def _compare_and_write(one: Outstanding, kernel: Kernel, looks: int = _LOOKS) -> KnobFate:
    ref, prior, ours = one
    present = kernel.read(ref)
    if not any(value != prior and is_in_force(ref, value, present, kernel) for value in ours):
        if as_before(one, present, kernel):
            return KnobFate(ref, Fate.ALREADY)
        if looks > 1 and kernel.read(ref) != present:  # its cpuset has changed since we looked at the mask
            return _compare_and_write(one, kernel, looks - 1)
        if not ref.kind.half_written(ref, prior, ours, present):
            meant = ref.kind.meant(prior, ours, present)
            if meant != present:
                kernel.write(ref, meant)
            detail = f"{ref}: somebody else set it to {shown(meant)} since"
            return KnobFate(ref, Fate.LEFT_ALONE, detail)
    kernel.write(ref, prior)
    for pause_s in _PAUSES_S:  # its cpuset may change, and the thread may end, while we look
        time.sleep(pause_s)
        present = kernel.read(ref)
        if present == prior or present == kernel.in_force(ref, prior):
            return KnobFate(ref, Fate.PUT_BACK)
    detail = f"{ref}: set to {shown(prior)}, the kernel made it {shown(present)}"
    return KnobFate(ref, Fate.FAILED, detail)


def as_before(one: Outstanding, present: NativeValue, kernel: Kernel) -> bool:
    """Does the knob read as it did before us? Raises ThreadGone, or OSError."""
    return present == one.prior or present == kernel.in_force(one.ref, one.prior)


def is_in_force(ref: KnobRef, value: NativeValue, present: NativeValue, kernel: Kernel) -> bool:
    """Does the knob read as it does while this value is what was last asked for? Raises ThreadGone, or
    OSError."""
    return present == value or (ref.kind.may_read(value, present) and present == kernel.in_force(ref, value))


def shown(value: NativeValue) -> str:
    """A value for the user's eye."""
    if isinstance(value, tuple):
        return cpulist.render(value) or "no mask"
    return str(value)
