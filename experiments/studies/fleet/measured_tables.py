"""What was measured of single hosts, and how well the curves through it foretell other runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from ...results.markdown import markdown_table
from .curves import CRITICAL, ORACLE, OURS, PLAIN, Foretold, Host
from .moves import queued

ARMS = {PLAIN: "EEVDF", CRITICAL: "`critical`", ORACLE: "its oracle", OURS: "`dasec scx`"}


def hosts_table(known: Iterable[Host], other_seeds: Iterable[Foretold]) -> str:
    """By arm and number of VMs: means of the runs, each seed's p99, and the seed that the others' curve
    foretells worst."""
    hosts, foretold, lines = list(known), list(other_seeds), []
    for arm in ARMS:
        cells = {host.cell for host in hosts if host.arm == arm}
        rows = []
        for cell in cells:
            points = [host.point for host in hosts if (host.arm, host.cell) == (arm, cell)]
            of = [each for each in foretold if (each.arm, each.what) == (arm, cell)]
            busy = statistics.fmean(point.busy for point in points)
            p99_ms = " ".join(f"{each.was_ms:.1f}" for each in of)
            worst = max((each.off for each in of), key=abs)
            rows.append((busy, [f"{100 * busy:.0f}", p99_ms, f"{100 * worst:+.0f}"]))
        lines += [[ARMS[arm], *row] for _, row in sorted(rows)]
    return markdown_table(["arm", "CPUs busy, %", "p99 of each seed, ms", "worst foretold, %"], lines)


def waits_table(seen: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Each host, and what the queue has with which the hints' rule simulates."""
    lines = [
        [ARMS[arm], f"{100 * busy:.0f}", f"{100 * wait:.0f}", f"{100 * queued(busy):.0f}"]
        for arm, of in seen.items()
        for busy, wait in of
    ]
    return markdown_table(
        ["arm", "CPUs busy, %", "of those who want a CPU wait, %", "by the queue, %"], lines
    )


def checks_table(foretold: Iterable[Foretold]) -> str:
    """Other studies' runs, by how busy they were."""
    lines = [
        [ARMS[each.arm], each.what, f"{100 * each.busy:.0f}", f"{each.curve_ms:.1f}", f"{each.was_ms:.1f}"]
        + [f"{100 * each.off:+.0f}"]
        for each in sorted(foretold, key=lambda each: (list(ARMS).index(each.arm), each.busy))
    ]
    return markdown_table(
        ["arm", "study", "CPUs busy, %", "p99 foretold, ms", "measured, ms", "off, %"], lines
    )
