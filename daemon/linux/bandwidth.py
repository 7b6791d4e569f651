"""CFS bandwidth control of a group: its quota and period, and what was used and throttled."""

from __future__ import annotations

import errno
import os
import time
from typing import NamedTuple

from . import procfs
from .cgroupfs import Hierarchy, write
from .errors import unknown_format

NO_QUOTA = "max"
V1_QUOTA = "cpu.cfs_quota_us"


_ATTEMPTS = 3
"""At a quota that somebody else writes at the same time."""


class GroupUse(NamedTuple):
    """Totals of a group: CPU time (0 where this hierarchy does not count it), for how long its threads were
    throttled, over all CPUs, the periods of its limit, and those in which it stopped somebody."""

    used_ns: int
    throttled_ns: int
    periods: int = 0
    stopped_periods: int = 0


_MONOTONIC_COARSE = 6
"""CLOCK_MONOTONIC_COARSE of linux/time.h, which ticks once a jiffy; Python has no name for it."""


def jiffy_us() -> int:
    """How long a jiffy of this kernel is."""
    return round(time.clock_getres(_MONOTONIC_COARSE) * 1_000_000)


def quota_file(hierarchy: Hierarchy, group: str) -> str:
    """The file that holds the group's quota; on v1 its period is beside it. The top group has none on v2."""
    return f"{hierarchy.directory(group)}/{V1_QUOTA if hierarchy.version == 1 else 'cpu.max'}"


def quota_file_at(directory: str) -> str:
    """The same of a group's directory, whichever version its hierarchy is of."""
    v1 = f"{directory}/{V1_QUOTA}"
    return v1 if os.path.exists(v1) else f"{directory}/cpu.max"


def burst_file(file: str) -> str:
    """The one with the burst, beside that with the quota. Kernels before 5.14 have none."""
    return f"{os.path.dirname(file)}/{'cpu.cfs_burst_us' if _is_v1(file) else 'cpu.max.burst'}"


def read_burst(file: str) -> int:
    """In microseconds; 0: none. Raises ThreadGone, or OSError."""
    word, _, _ = procfs.read_bytes(file).partition(b"\n")
    if not word.isdigit():
        raise unknown_format(f"{file} holds no burst")
    return int(word)


def write_burst(file: str, burst_us: int) -> None:
    """Set it. Raises OSError."""
    write(file, f"{burst_us}\n")


def read_quota(file: str) -> str:
    """Quota and period in microseconds, as cpu.max has them on v2: "max 100000" is none. Raises ThreadGone,
    or OSError."""
    words = procfs.read_bytes(file).decode("ascii", "replace").split()
    if _is_v1(file):
        words = [
            NO_QUOTA if words == ["-1"] else "".join(words),
            _word(_period_file(file)),
        ]
    if len(words) != 2:
        raise unknown_format(f"{file} holds no quota")
    return " ".join(words)


def cores_of(quota: str) -> float:
    """How much of a core a pair of quota and period is; 0: none.

    >>> cores_of("50000 100000"), cores_of("max 100000")
    (0.5, 0.0)
    """
    quota_us, _, period_us = quota.partition(" ")
    is_limit = quota_us.isdecimal() and period_us.isdecimal() and int(period_us)
    return int(quota_us) / int(period_us) if is_limit else 0.0


def write_quota(file: str, value: str) -> None:
    """Set both. On v1, where they are two files, another period is written while there is no quota: half of
    a change could be more than the group around allows (tg_cfs_schedulable_down()). Whoever writes both
    between our two writes would be left with our quota in a period of theirs. Raises OSError."""
    if not _is_v1(file):
        write(file, value)
        return
    quota, _, period = value.partition(" ")
    if not period:
        raise OSError(errno.EINVAL, f"{value!r} is no quota")
    wanted = "-1" if quota == NO_QUOTA else quota
    for _ in range(_ATTEMPTS):
        if _word(_period_file(file)) != period:
            write(file, "-1")
            write(_period_file(file), period)
        write(file, wanted)
        if _word(_period_file(file)) == period or _word(file) != wanted:
            return  # all of it is there, or somebody else's by now


def usage_of(directory: str) -> GroupUse:
    """What a group used. Raises ThreadGone, or OSError."""
    rows = dict(
        line.split(b" ", 1)
        for line in procfs.read_bytes(f"{directory}/cpu.stat").splitlines()
        if b" " in line
    )
    try:
        periods = int(rows.get(b"nr_periods", 0)), int(rows.get(b"nr_throttled", 0))
        if b"throttled_time" in rows:
            return GroupUse(0, int(rows[b"throttled_time"]), *periods)
        used_ns, throttled_ns = (int(rows.get(key, 0)) * 1000 for key in (b"usage_usec", b"throttled_usec"))
        return GroupUse(used_ns, throttled_ns, *periods)
    except ValueError as error:
        raise unknown_format(f"{directory}/cpu.stat holds what is no number") from error


def _is_v1(file: str) -> bool:
    return os.path.basename(file) == V1_QUOTA


def _word(file: str) -> str:
    return procfs.read_bytes(file).decode("ascii", "replace").strip()


def _period_file(file: str) -> str:
    return f"{os.path.dirname(file)}/cpu.cfs_period_us"
