"""What the kernel interface can say besides OSError."""

from __future__ import annotations


class ThreadGone(Exception):
    """The thread ended, its id belongs to another by now, or its group vanished. Normal."""


class HierarchyMissing(Exception):
    """No cpu cgroup hierarchy is mounted here."""
