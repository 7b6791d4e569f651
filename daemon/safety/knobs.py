"""Compare and put back one knob."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ..linux.errors import HierarchyMissing, ThreadGone
from ..linux.knob import UNSET, KnobRef, NativeKnob, NativeValue
from .kernel import Kernel
from .ledger import Outstanding

_OF_A_GROUP = frozenset({NativeKnob.WEIGHT_V1, NativeKnob.WEIGHT_V2, NativeKnob.CONTROLLERS})
"""These outlive the thread for whose sake they were changed."""


class Fate(StrEnum):
    """What became of a knob, or of a group of ours."""

    PUT_BACK = "put back"
    ALREADY = "already as it was"
    LEFT_ALONE = "left alone"
    VANISHED = "vanished"
    FAILED = "failed"


class Verdict(NamedTuple):
    """One knob and what became of it."""

    ref: KnobRef
    fate: Fate
    detail: str = ""


def judge(one: Outstanding, kernel: Kernel) -> Verdict:
    """Write the prior value if the kernel still holds one of ours. Never raises."""
    try:
        return _compare_and_write(one, kernel, orphan=False)
    except ThreadGone:
        if one.ref.kind not in _OF_A_GROUP:
            return Verdict(one.ref, Fate.VANISHED)
    except (OSError, HierarchyMissing) as error:
        return Verdict(one.ref, Fate.FAILED, f"{describe(one.ref)}: {error}")
    try:
        return _compare_and_write(one, kernel, orphan=True)
    except ThreadGone:
        return Verdict(one.ref, Fate.VANISHED)
    except OSError as error:
        return Verdict(one.ref, Fate.FAILED, f"{describe(one.ref)}: {error}")


def _compare_and_write(one: Outstanding, kernel: Kernel, *, orphan: bool) -> Verdict:
    read, write = (kernel.read_orphan, kernel.write_orphan) if orphan else (kernel.read, kernel.write)
    ref, prior, ours = one
    present = read(ref)
    if present == prior:
        return Verdict(ref, Fate.ALREADY)
    if present not in ours:
        if as_before(one, present, kernel):
            return Verdict(ref, Fate.ALREADY)
        detail = f"{describe(ref)}: somebody else set it to {shown(present)} since"
        return Verdict(ref, Fate.LEFT_ALONE, detail)
    write(ref, prior)
    present = read(ref)
    if present != prior and not _is_unset(ref, prior):
        detail = f"{describe(ref)}: set to {shown(prior)}, the kernel made it {shown(present)}"
        return Verdict(ref, Fate.FAILED, detail)
    return Verdict(ref, Fate.PUT_BACK)


def as_before(one: Outstanding, present: NativeValue, kernel: Kernel) -> bool:
    """Does the knob read as it did before us? A slice of 0 and a mask of () mean "never set".
    Raises ThreadGone, or OSError."""
    if present == one.prior:
        return True
    return _is_unset(one.ref, one.prior) and present == kernel.unset(one.ref)


def _is_unset(ref: KnobRef, prior: NativeValue) -> bool:
    return ref.kind in UNSET and prior == UNSET[ref.kind]


def describe(ref: KnobRef) -> str:
    """A knob for the user's eye."""
    place = f" ({ref.path})" if ref.kind in _OF_A_GROUP else ""
    return f"{ref.kind.value} of thread {ref.vcpu.tid} of process {ref.vcpu.pid}{place}"


def shown(value: NativeValue) -> str:
    """A value for the user's eye."""
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "no mask"
    return str(value)
