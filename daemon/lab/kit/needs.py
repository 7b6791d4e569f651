"""What a run cannot do without, checked before the first effect; each lack is one line."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable

from ...errors import ExitStatus, Refusal
from ...hosts.open import probe
from ...linux.cgroupfs import find_hierarchy
from ...linux.errors import HierarchyMissing
from ...model import Capabilities
from .driver import Driver
from .tree import Tree

LIBRARIES = ("hdrh", "matplotlib", "numpy", "scipy")
WITHOUT_ROOT = "`dasec run --dry-run --config FILE` still decides, for any processes, without writing"


def unable(line: str) -> Refusal:
    """This host, or this user on it, cannot do it."""
    return Refusal(ExitStatus.HOST, line)


def check_root() -> None:
    """Refusal without root."""
    if os.geteuid() != 0:
        raise unable(f"makes cgroups and sets other processes' knobs: run it as root; {WITHOUT_ROOT}")


def check_libraries(names: Iterable[str] = LIBRARIES) -> None:
    """Refusal without these of the extra `demo`."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        mend = f"in the clone, `{sys.executable} -m pip install '.[demo]'`"
        raise unable(f"{', '.join(missing)}: not installed: {mend}")


def check_drivers(drivers: Iterable[Driver]) -> None:
    """Refusal if one of them lacks something."""
    for line in dict.fromkeys(filter(None, (one.missing() for one in drivers))):
        raise unable(line)


def find_tree() -> Tree:
    """Where our groups will hang, or a Refusal."""
    try:
        tree = Tree.of(find_hierarchy())
    except HierarchyMissing as error:
        raise unable(f"cgroup: {error}: mount one; {WITHOUT_ROOT}") from error
    if not os.access(tree.top.parent, os.W_OK):
        raise unable(f"{tree.top.parent}: cannot be written (read-only mount?): {WITHOUT_ROOT}")
    return tree


def capabilities() -> Capabilities:
    """What the policies can do here, or a Refusal if that is nothing."""
    found = probe()
    if not (found.weight or found.rescheduling_latency or found.affinity):
        notes = (found.weight_note, found.rescheduling_latency_note, found.affinity_note)
        raise unable(f"no knob works here ({'; '.join(notes)}): {WITHOUT_ROOT}")
    return found
