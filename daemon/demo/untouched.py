"""Proof that the demo left the host as it found it: every thread's knobs, every group's weight."""

from __future__ import annotations

from ..safety.fingerprint import Fingerprint, differences, fingerprint
from ..safety.verify import verify
from .tree import TOP

Look = Fingerprint


def look() -> Look:
    """Everything of the host that a policy can change."""
    return fingerprint()


def findings(before: Look, after: Look) -> list[str]:
    """What is not as before, one line each. Groups that others made or removed meanwhile do not
    count; a thread or a group that changed does, whoever changed it: the kernel keeps no names."""
    had = Fingerprint(
        before.threads, {path: weight for path, weight in before.groups.items() if path in after.groups}
    )
    has = Fingerprint(
        after.threads,
        {
            path: weight
            for path, weight in after.groups.items()
            if path in before.groups or TOP in path.split("/")
        },
    )
    return [*map(str, verify()), *differences(had, has)]
