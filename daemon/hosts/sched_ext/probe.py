"""Could our scheduler be loaded here? Told without loading it: whoever opens this host does, right after."""

from __future__ import annotations

from dataclasses import replace

from ...bpf.scx import why_not
from ...model import Capabilities

BACKEND = "sched_ext"


def with_sched_ext(found: Capabilities) -> Capabilities:
    """What a host can do by way of our scheduler; where it cannot be loaded, as it was found."""
    if why_not() is not None:
        return found
    return replace(
        found,
        backend=BACKEND,
        weight=True,
        weight_note="slices of the thread within its VM, by our sched_ext scheduler",
        rescheduling_latency=True,
        rescheduling_latency_note="class of the thread within its VM, by our sched_ext scheduler",
        cap=False,
        cap_note="our sched_ext scheduler keeps no CPU limits",
        nested_weight=True,
    )


def put_out(had: Capabilities, wake_edges_note: str) -> Capabilities:
    """What is left of it when the kernel's own schedules again."""
    gone = "our sched_ext scheduler was put out"
    return replace(
        had,
        weight=False,
        weight_note=gone,
        rescheduling_latency=False,
        rescheduling_latency_note=gone,
        cap_note=gone,
        wake_edges_note=wake_edges_note,
    )


def lacks() -> str:
    """Why it cannot serve here, and how to mend it."""
    return f"{why_not() or 'our sched_ext scheduler could be loaded'}: name another backend"
