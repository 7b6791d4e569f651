"""Has this kernel our patch, and does it work? Found by trying on a child of our own."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...linux import dasecfile, procfs
from ...linux.errors import ThreadGone
from ...model import Capabilities, Finding
from ..probe.dummy import sleeper

TRIED_GRANULARITY_NS = 500_000
TRIED_WEIGHT = 1126
"""10 % above neutral, the step that TSA makes (§4.2)."""

_WITHIN = "counted by the kernel in try_to_wake_up(), within a process"
_ALONE = "of a vCPU alone in its cgroup, that group's: "


class Patch(NamedTuple):
    """What the patch brings; `broken`: it is there and cannot be used, for the reason in every note."""

    latency: Finding
    weight: Finding
    edges: Finding
    broken: bool

    @property
    def works(self) -> bool:
        """May the host rely on it?"""
        return self.latency.works and self.weight.works and self.edges.works


def _without(why: str, *, broken: bool) -> Patch:
    finding = Finding(False, why)
    return Patch(finding, finding, finding, broken)


NO_PATCH = _without("no /proc/PID/dasec: the kernel is without our patch", broken=False)


def with_patch(found: Capabilities) -> Capabilities:
    """What a host can do by way of our patch; without one, as it was found."""
    with sleeper() as pid:
        patch = try_patch(pid)
    if patch.broken:
        return replace(found, warnings=(*found.warnings, f"{patch.edges.note}: not used"))
    if not patch.works:
        return found
    return replace(
        found,
        backend="patched_cfs",
        weight=True,
        weight_note=f"{patch.weight.note}; {_ALONE}{found.weight_note}",
        rescheduling_latency=True,
        rescheduling_latency_note=patch.latency.note,
        wake_edges=True,
        wake_edges_note=patch.edges.note,
    )


def try_patch(pid: int, proc: str = procfs.PROC) -> Patch:
    """Set both knobs, read them back, put them back; read the statistics."""
    try:
        file = dasecfile.DasecFile(pid, proc)
    except ThreadGone:
        return NO_PATCH
    except OSError as error:
        return _without(f"/proc/PID/dasec cannot be opened: {error.strerror}", broken=True)
    counted = _WITHIN
    try:
        for key, value in ((dasecfile.GRANULARITY, TRIED_GRANULARITY_NS), (dasecfile.WEIGHT, TRIED_WEIGHT)):
            _try_knob(file, pid, key, value, proc)
        table = file.read()
        if table.columns(table.lines).wakeups is None:
            counted = f"{_WITHIN} only: it has no column `timers`, so who is called from outside is not known"
    except (OSError, ThreadGone) as error:
        return _without(f"/proc/PID/dasec: {error}", broken=True)
    finally:
        file.close()
    return Patch(
        Finding(True, "wake-up granularity of the thread by /proc/PID/dasec"),
        Finding(True, "load weight of the thread by /proc/PID/dasec"),
        Finding(True, counted),
        broken=False,
    )


def _try_knob(file: dasecfile.DasecFile, pid: int, key: str, value: int, proc: str) -> None:
    for wanted in (value, dasecfile.DEFAULT):
        for batch, _ in dasecfile.transactions([dasecfile.Setting(pid, key, wanted)]):
            file.write(batch)
        kept = dasecfile.read_knob(pid, pid, key, proc)
        if kept != wanted:
            raise OSError(0, f"{key} set to {wanted}, the kernel made it {kept}")
