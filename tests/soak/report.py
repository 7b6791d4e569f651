"""What a soak found: numbers, and a plot beside them."""

from __future__ import annotations

import json
from pathlib import Path

from .flat import growth
from .soak import Findings


def summary(found: Findings) -> dict[str, object]:
    """The numbers."""
    grown = growth(found.samples)
    first, last = found.samples[0], found.samples[-1]
    return {
        "minutes": round(last.at_s / 60, 1),
        "kills": found.kills,
        "slowest_restore_ms": round(found.slowest_restore_s * 1000),
        "reloads": found.reloads,
        "record_rotations": found.rotations,
        "memory_kib": {"first": first.memory_kib, "last": last.memory_kib},
        "descriptors": {"first": first.descriptors, "last": last.descriptors},
        "growth_over_the_second_half": None
        if grown is None
        else {"memory_kib": round(grown[0]), "descriptors": round(grown[1], 1)},
        "faults": found.faults(),
    }


def write(found: Findings, folder: Path) -> None:
    """soak.json and soak.png."""
    from matplotlib.figure import Figure

    (folder / "soak.json").write_text(json.dumps(summary(found), indent=2) + "\n")
    figure = Figure(figsize=(9, 5))
    upper, lower = figure.subplots(2, 1, sharex=True)
    minutes = [one.at_s / 60 for one in found.samples]
    upper.plot(minutes, [one.memory_kib / 1024 for one in found.samples])
    upper.set_ylabel("resident memory, MiB")
    upper.set_title(f"{found.kills} kills beside it, {found.reloads} reloads, {found.rotations} rotations")
    lower.plot(minutes, [one.descriptors for one in found.samples])
    lower.set_ylabel("descriptors")
    lower.set_xlabel("minutes")
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
    figure.savefig(folder / "soak.png", dpi=110)
