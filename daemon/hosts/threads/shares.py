"""What the host gives a workload now: its share where none was configured, its quota, and by which group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...knobs.weights import group_weight
from ...linux import cgroupfs
from ...linux.cgroupfs import Hierarchy
from ...linux.errors import ThreadGone
from ...model import NEUTRAL_WEIGHT


class ShareAndQuota(NamedTuple):
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


def home_of(hierarchy: Hierarchy | None, groups: Iterable[str]) -> str | None:
    """The innermost group around threads in these groups; None if that is the top one."""
    group = common_group(groups)
    return None if hierarchy is None or group in ("/", hierarchy.root) else group


def standing(
    hierarchy: Hierarchy | None, home: str | None, threads: int, share: int | None, inner: Sequence[str] = ()
) -> ShareAndQuota:
    """A workload whose threads have a group for themselves has that group's weight and quota;
    in the top group each thread competes for itself, so the workload has as many shares as threads.

    `inner`: a group below for each thread, which may have a quota of its own (libvirt's `vcpu_quota`). The
    quota of all of them is on the group around these: under systemd that is not the one with the share.
    """
    if hierarchy is None or home is None:
        return ShareAndQuota(share or NEUTRAL_WEIGHT * max(1, threads), None)
    quota = cgroupfs.quota_cores(hierarchy, around(home, inner))
    limits = [cgroupfs.quota_cores(hierarchy, group) for group in inner]
    own = [limit for limit in limits if limit is not None]
    if own and len(own) == len(limits):
        quota = sum(own) if quota is None else min(quota, sum(own))
    return ShareAndQuota(share or _weight(hierarchy, home), quota)


def around(home: str, inner: Sequence[str]) -> str:
    """The innermost group around all threads of a workload."""
    return common_group(group.rpartition("/")[0] for group in inner) if inner else home


def files(
    hierarchy: Hierarchy | None, home: str | None, share: int | None, inner: Sequence[str] = ()
) -> frozenset[str]:
    """The files that `standing` goes by."""
    if hierarchy is None or home is None:
        return frozenset()
    quotas = {file for group in inner or (home,) for file in cgroupfs.quota_files(hierarchy, group)}
    return frozenset(quotas if share else quotas | {hierarchy.weight_file(home)})


def nested(homes: list[str | None]) -> list[bool]:
    """Which of the workloads with these homes have theirs for themselves, so that it competes for them."""
    return [
        home is not None
        and not any(f"{other}/".startswith(f"{home}/") for other in homes[:at] + homes[at + 1 :] if other)
        for at, home in enumerate(homes)
    ]


def _weight(hierarchy: Hierarchy, group: str) -> int:
    try:
        native = cgroupfs.read_weight(hierarchy.weight_file(group))
    except (ThreadGone, OSError):
        return NEUTRAL_WEIGHT
    weight = group_weight(hierarchy).model(native)
    return weight if isinstance(weight, int) and weight > 0 else NEUTRAL_WEIGHT
