"""Were all arms asked the same? The times at which requests were due, as each run recorded them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

FILE = "arrivals.json"

Arrivals = Mapping[str, str]
"""By instance, a digest of the times at which its requests were due; who keeps no times is left out."""


def digest(times: Path) -> str:
    """Of a file of recorded arrival times."""
    return hashlib.sha256(times.read_bytes()).hexdigest()


def seen_in(folder: Path, instances: Iterable[str]) -> Arrivals:
    """What the drivers of these instances have left in a run's folder."""
    files = {name: folder / name / "arrivals" for name in instances}
    return {name: digest(file) for name, file in files.items() if file.exists()}


def write(folder: Path, arrivals: Arrivals) -> None:
    """Beside the other raw results of a run."""
    (folder / FILE).write_text(json.dumps(arrivals, indent=1) + "\n", encoding="utf-8")


def differing(by_arm: Mapping[str, Arrivals]) -> tuple[str, ...]:
    """The instances that were not asked the same in all runs of a block."""
    names = dict.fromkeys(name for arrivals in by_arm.values() for name in arrivals)
    return tuple(name for name in names if len({arrivals.get(name) for arrivals in by_arm.values()}) > 1)


def read(folder: Path) -> Arrivals:
    """What a run has noted; nothing if it has not."""
    file = folder / FILE
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {str(name): str(value) for name, value in found.items()}
