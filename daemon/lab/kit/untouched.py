"""Proof that the runs left the host as it found it: every thread's knobs, every group's weight and limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...safety.fingerprint import Fingerprint, differences, fingerprint
from ...safety.verify import Finding, verify
from .tree import TOP_NAME


@dataclass(frozen=True, slots=True)
class Look:
    """Everything of the host that a policy can change, and what `dasec verify` says."""

    fingerprint: Fingerprint
    verified: tuple[Finding, ...]


def look() -> Look:
    """The host as it is."""
    return Look(fingerprint(), verify())


def changes(before: Look, after: Look) -> list[str]:
    """What is not as before, one line each. Groups that others made or removed meanwhile do not
    count; a thread or a group that changed does, whoever changed it: the kernel keeps no names."""
    had, has = before.fingerprint, after.fingerprint
    kept = {path: holds for path, holds in had.groups.items() if path in has.groups}
    seen = {path: holds for path, holds in has.groups.items() if path in had.groups or _is_ours(path)}
    new = [finding for finding in after.verified if finding not in before.verified]
    return [
        *map(str, ours(new, has.groups)),
        *differences(Fingerprint(had.threads, kept), Fingerprint(has.threads, seen)),
    ]


def ours(findings: Iterable[Finding], groups: Iterable[str]) -> list[Finding]:
    """Without what verify says about groups of other daemons that run on this host."""
    foreign = {path for path in groups if not _is_ours(path)}
    return [finding for finding in findings if finding.where not in foreign]


def _is_ours(path: str) -> bool:
    return TOP_NAME in path.split("/")
