"""What the kernel says of the sched_ext scheduler that is loaded."""

from __future__ import annotations

from pathlib import Path

from .one_line import one_line

SYSFS = Path("/sys/kernel/sched_ext")

OURS = "dasec"
"""The name of both sets of operations of scx_dasec.bpf.c."""


def state(sysfs: Path = SYSFS) -> str:
    """`disabled`, `enabling`, `enabled` or `disabling`; empty on a kernel without sched_ext."""
    return one_line(sysfs / "state")


def name(sysfs: Path = SYSFS) -> str:
    """Of the scheduler that is loaded, also while it goes; empty if none is."""
    return one_line(sysfs / "root/ops")
