"""What the host gives a workload now: its share where none was configured, and its quota."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...linux import cgroupfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...linux.knob import NativeKnob
from ...model import NEUTRAL_WEIGHT
from . import units


class Standing(NamedTuple):
    """A workload's share and quota."""

    share: int
    quota_cores: float | None


def common_group(groups: Iterable[str]) -> str:
    """The innermost group that holds all of these; "/" if there is no other."""
    paths = [group.strip("/").split("/") for group in groups]
    common: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1 or not names[0]:
            break
        common.append(names[0])
    return "/" + "/".join(common)


def standing(hierarchy: Hierarchy | None, groups: Iterable[str], threads: int, share: int | None) -> Standing:
    """A workload whose threads have a group for themselves has that group's weight and quota;
    in the top group each thread competes for itself, so the workload has as many shares as threads."""
    group = common_group(groups)
    if hierarchy is None or group in ("/", hierarchy.root):
        return Standing(share or NEUTRAL_WEIGHT * max(1, threads), None)
    return Standing(share or _weight(hierarchy, group), cgroupfs.quota_cores(hierarchy, group))


def _weight(hierarchy: Hierarchy, group: str) -> int:
    try:
        native = cgroupfs.read_weight(hierarchy.weight_file(group))
    except (ThreadGone, OSError):
        return NEUTRAL_WEIGHT
    kind = NativeKnob.WEIGHT_V1 if hierarchy.version == 1 else NativeKnob.WEIGHT_V2
    weight = units.model(kind, native)
    return weight if isinstance(weight, int) and weight > 0 else NEUTRAL_WEIGHT
