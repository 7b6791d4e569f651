"""Limits of our own process."""

from __future__ import annotations

import resource

_NR_OPEN = 1_048_576
"""The kernel's default fs.nr_open: more cannot be asked for."""


def raise_open_files() -> int:
    """As many open files as we may have: three are kept for each thread. Returns the limit now."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (_NR_OPEN, hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, max(limit, hard)))
        except (OSError, ValueError):
            continue
        break
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
