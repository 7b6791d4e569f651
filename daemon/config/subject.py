"""What the daemon was told and found, for who says so: the status file, and the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .. import budget
from ..model import Capabilities


@dataclass(frozen=True, slots=True)
class Subject:
    """What the daemon was told; of it only the policy changes while it runs."""

    policy: str
    period_ms: int
    dry_run: bool
    capabilities: Capabilities
    budget_percent: float = budget.LEAST_PERCENT
    record: Path | None = None
