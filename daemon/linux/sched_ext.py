"""What the kernel says of the sched_ext scheduler that is loaded."""

from __future__ import annotations

from pathlib import Path

SYSFS = Path("/sys/kernel/sched_ext")

OURS = "dasec"
"""The name of both sets of operations of scx_dasec.bpf.c."""


def state(sysfs: Path = SYSFS) -> str:
    """`disabled`, `enabling`, `enabled` or `disabling`; empty on a kernel without sched_ext."""
    return _line(sysfs / "state")


def name(sysfs: Path = SYSFS) -> str:
    """Of the scheduler that is loaded, also while it goes; empty if none is."""
    return _line(sysfs / "root/ops")


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
