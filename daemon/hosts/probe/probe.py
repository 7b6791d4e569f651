"""What can this kernel do? Found by trying: set, read back, put back, on a child of our own."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ...bpf.extent import Extent
from ...bpf.wake_edges import open_edges
from ...linux import affinity, bandwidth, cgroupfs, cpus, procfs, schedattr
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import HierarchyMissing, ThreadGone
from ...linux.uninterrupted import uninterrupted
from ...model import Capabilities, Finding, Level
from ...safety.groups import probe_group
from ..host import CAPS_ON_V1
from . import surroundings
from .dummy import sleeper
from .nesting import Nesting, nesting_of
from .reweight import try_duel

TRIED_SLICE_NS = 4_000_000
TRIED_WEIGHTS = {1: 1126, 2: 110}
"""10 % above neutral in either hierarchy's unit: the step that TSA makes (§4.2)."""


TRIED_QUOTA = "5000 10000"


def try_kernel(proc: str = procfs.PROC, sysfs: str = cpus.SYSFS, *, duel: bool = True) -> Capabilities:
    """Try everything that every kernel might have. `duel` False leaves out whether this one starves groups
    (two seconds at most)."""
    with sleeper() as pid:
        slices = _try_slice(pid)
        masks = _try_affinity(pid)
        nice = _try_nice(pid)
    weights, hierarchy = _try_weight(proc)
    nesting = Nesting()
    if duel and weights.works and hierarchy is not None:
        nesting = _try_nesting(hierarchy, platform.release())
    edges = _try_edges()
    caps = _try_cap(hierarchy)
    return Capabilities(
        backend="mainline",
        weight=weights.works,
        weight_note=f"{weights.note}; by nice where they share one"
        if weights.works and nice
        else weights.note,
        rescheduling_latency=slices.works,
        rescheduling_latency_note=slices.note,
        affinity=masks.works,
        affinity_note=masks.note,
        wake_edges=edges.works,
        wake_edges_note=edges.note,
        warnings=(*surroundings.warnings(proc, sysfs), *nesting.warnings),
        cap=caps.works,
        cap_note=caps.note,
        nested_weight=nesting.works,
        nice=nice,
    )


def _try_slice(pid: int) -> Finding:
    try:
        schedattr.set_slice(pid, TRIED_SLICE_NS)
        kept = schedattr.get(pid).slice_ns
        schedattr.set_slice(pid, 0)
        default = schedattr.get(pid).slice_ns
    except OSError as error:
        return Finding(False, f"sched_setattr: {error.strerror or error}")
    if kept != TRIED_SLICE_NS:
        return Finding(
            False, "the kernel ignores the slice (needs EEVDF, Linux 6.12 or newer): TSA and RCR only"
        )
    return Finding(True, f"slice by sched_setattr; the default is {default / 1e6:g} ms")


def _try_affinity(pid: int) -> Finding:
    try:
        before = affinity.get(pid)
        affinity.put(pid, before[:1])
        kept = affinity.get(pid)
        affinity.put(pid, ())
        after = affinity.get(pid)
    except OSError as error:
        return Finding(False, f"sched_setaffinity: {error.strerror or error}")
    if kept != before[:1]:
        return Finding(False, "the kernel did not keep the mask")
    return Finding(True, f"sched_setaffinity on {len(after)} CPUs")


def _try_nice(pid: int) -> bool:
    """Whoever may nice a thread may not always take it back."""
    try:
        before = schedattr.nice_of(pid)
        schedattr.set_nice(pid, before - 1)
        schedattr.set_nice(pid, before)
    except OSError:
        return False
    return schedattr.nice_of(pid) == before


def _try_edges() -> Finding:
    monitor = open_edges(Extent(Level.FULL, slots=1, edges=1))
    monitor.close()
    if monitor.level is Level.NONE:
        return Finding(False, monitor.note)
    return Finding(True, "BPF monitor at sched_waking and sched_switch")


def _try_weight(proc: str) -> tuple[Finding, Hierarchy | None]:
    try:
        hierarchy = cgroupfs.find_hierarchy(proc)
    except HierarchyMissing as error:
        return Finding(False, str(error)), None
    wanted = TRIED_WEIGHTS[hierarchy.version]
    where = f"{'cpu.shares' if hierarchy.version == 1 else 'cpu.weight'} below {hierarchy.mount}"
    try:
        with _group(hierarchy) as group:
            file = hierarchy.weight_file(group)
            cgroupfs.write_weight(file, wanted)
            kept = cgroupfs.read_weight(file)
    except (ThreadGone, FileNotFoundError):
        return Finding(True, f"{where}: only in groups of our own: nobody hands the controller on"), hierarchy
    except OSError as error:
        return Finding(False, f"{where}: {error.strerror or error}"), hierarchy
    if kept != wanted:
        return Finding(False, f"{where}: the kernel did not keep the weight"), hierarchy
    return Finding(True, f"{where} (cgroup v{hierarchy.version}), for vCPUs alone in their group"), hierarchy


def _try_cap(hierarchy: Hierarchy | None) -> Finding:
    if hierarchy is None:
        return Finding(False, "no cpu cgroup hierarchy is mounted")
    try:
        with _group(hierarchy) as group:
            file = bandwidth.quota_file(hierarchy, group)
            bandwidth.write_quota(file, TRIED_QUOTA)
            kept = bandwidth.read_quota(file)
    except (ThreadGone, FileNotFoundError):
        if hierarchy.version == 2:
            return Finding(True, "cpu.max: only in groups of our own: nobody hands the controller on")
        return Finding(False, "this kernel has no CFS bandwidth control")
    except OSError as error:
        return Finding(False, f"a quota below {hierarchy.mount}: {error.strerror or error}")
    if kept != TRIED_QUOTA:
        return Finding(False, "the kernel did not keep a quota")
    where = f"{os.path.basename(file)} below {hierarchy.mount} (cgroup v{hierarchy.version})"
    return Finding(True, f"{where}: {CAPS_ON_V1}" if hierarchy.version == 1 else where)


@contextmanager
def _group(hierarchy: Hierarchy) -> Iterator[str]:
    group = f"{hierarchy.root.rstrip('/')}/{probe_group()}"
    with ExitStack() as ours:
        with uninterrupted():
            os.mkdir(hierarchy.directory(group))
            ours.callback(cgroupfs.remove_group, hierarchy.directory(group))
        yield group


def _try_nesting(hierarchy: Hierarchy, release: str) -> Nesting:
    usable = affinity.get(0)
    if len(usable) < 2:
        return nesting_of("it takes two CPUs to try", release)
    try:
        return nesting_of(try_duel(hierarchy, hierarchy.root, usable[-1], usable[-2]), release)
    except OSError as error:
        return nesting_of(f"it could not be tried: {error.strerror or error}", release)
