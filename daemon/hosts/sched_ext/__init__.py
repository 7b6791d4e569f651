"""The host whose scheduler is ours (docs/sched-ext.md)."""

from .host import SchedExt

__all__ = ["SchedExt"]
