"""The door to a host: what kinds there are, which of them serves here, and how it is opened.

A new kind is a folder beside these and one row of BACKENDS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..bpf.extent import Extent
from ..bpf.wake_edges import open_edges
from ..model import Capabilities, Level
from .fake.fake import EXACT
from .fake.rehearsal import Rehearsal
from .host import Host, HostSettings
from .mainline import Mainline
from .patched import PatchedCfs
from .patched.probe import with_patch
from .probe.probe import try_kernel
from .sched_ext import SchedExt
from .sched_ext.probe import lacks, with_sched_ext
from .threads.ahead import WriteAhead

AUTO = "auto"


class Backend(NamedTuple):
    """One kind of host. `found`: what it makes of a kernel as it comes, which it hands on unchanged (but for
    a warning) where it cannot serve. `edges_as_asked`: it counts as much of who wakes whom as it was opened
    for; others count all that they can. `lacks`: why it cannot serve where it was asked for by name.
    `own_scheduler`: it brings one, so it is taken only where it is asked for by name, and how the kernel's
    own treats groups does not matter."""

    open: Callable[[WriteAhead, Capabilities, HostSettings], Host]
    found: Callable[[Capabilities], Capabilities]
    edges_as_asked: bool = False
    touches_a_kernel: bool = True
    lacks: Callable[[], str] = str
    own_scheduler: bool = False


def probe(backend: str = AUTO, *, duel: bool = True) -> Capabilities:
    """What this host can do by this kind of host, or by the first that serves. Without `duel` it is not tried
    whether the kernel starves groups, which takes two seconds at most."""
    if not touches_a_kernel(backend):
        return BACKENDS[backend].found(EXACT)
    asked = {name: kind for name, kind in BACKENDS.items() if _may_be(name, kind, backend)}
    found = try_kernel(duel=duel and not any(kind.own_scheduler for kind in asked.values()))
    for name, kind in asked.items():
        if kind.touches_a_kernel:
            found = kind.found(found)
            if found.backend == name:
                break
    return found


def _may_be(name: str, kind: Backend, asked: str) -> bool:
    return name == asked or (asked == AUTO and not kind.own_scheduler)


def touches_a_kernel(backend: str) -> bool:
    """Does this kind of host write to a kernel?"""
    return backend == AUTO or BACKENDS[backend].touches_a_kernel


def edges_counted(backend: str, settings: HostSettings) -> Level:
    """How much of who wakes whom a host counts that was opened with these settings."""
    return settings.edges if BACKENDS[backend].edges_as_asked and settings.bpf else Level.FULL


def _mainline(journal: WriteAhead, found: Capabilities, settings: HostSettings) -> Host:
    wanted = settings.bpf and settings.edges is not Level.NONE
    return Mainline(journal, found, settings, edges=open_edges(Extent(settings.edges)) if wanted else None)


BACKENDS: Mapping[str, Backend] = MappingProxyType(
    {
        "patched_cfs": Backend(
            PatchedCfs,
            with_patch,
            lacks=lambda: (
                "this kernel has no usable /proc/PID/dasec: boot one with our patch (kvm-patches/README.md)"
            ),
        ),
        "mainline": Backend(_mainline, lambda found: found, edges_as_asked=True),
        "sched_ext": Backend(SchedExt, with_sched_ext, edges_as_asked=True, lacks=lacks, own_scheduler=True),
        "fake": Backend(
            lambda journal, found, settings: Rehearsal(os.cpu_count() or 1, dry_run=settings.dry_run),
            lambda found: found,
            touches_a_kernel=False,
        ),
    }
)
"""By name, the one that is to be preferred first."""
