"""rKube's figures 1 to 11: what a target has beside a neighbour, on plain and with CPUs of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...results.markdown import markdown_table
from .runs import ARMS, RESULTS, Seen, kept

PICTURE = RESULTS / "rkube.png"

FILES = ("example", "vertical", "threads", "assigned", "replicas", "alone", "rkube", "rates")
"""In the order of the table."""

SHOWN = {"none": "#999999", "strict": "#D55E00"}


def _hosts() -> Mapping[str, Mapping[str, Seen]]:
    """Each file's by name."""
    return {host: runs for name in FILES for host, runs in sorted(kept(name).items())}


def table() -> str:
    """A row for each arm of each host."""
    head = ("host", "arm", "CPUs of the target", "mean ms", "p99 ms", "CPUs of the neighbour", "CPUs in use")
    rows = (
        (
            host,
            name,
            f"{runs[arm].target_cores:.2f}",
            f"{runs[arm].mean_ms:.2f}" if runs[arm].p99_ms else "–",
            f"{runs[arm].p99_ms:.1f}" if runs[arm].p99_ms else "–",
            f"{runs[arm].other_cores:.2f}",
            f"{runs[arm].cores:.2f}",
        )
        for host, runs in _hosts().items()
        for arm, name in ARMS.items()
        if arm in runs
    )
    return markdown_table(head, rows)


def draw(path: Path) -> None:
    """CPUs of batch work, and p99 of services: two bars for each host, plain and strict."""
    from matplotlib.figure import Figure

    hosts = _hosts()
    batch = {host: runs for host, runs in hosts.items() if not runs["none"].p99_ms}
    services = {host: runs for host, runs in hosts.items() if runs["none"].p99_ms}
    figure = Figure(figsize=(9, 8), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for axis, shown, value in ((left, batch, "target_cores"), (right, services, "p99_ms")):
        for number, (arm, colour) in enumerate(SHOWN.items()):
            places = [place + 0.4 * number for place, runs in enumerate(shown.values()) if arm in runs]
            values = [getattr(runs[arm], value) for runs in shown.values() if arm in runs]
            axis.barh(places, values, 0.4, color=colour, label=ARMS[arm])
        axis.set_yticks([place + 0.2 for place in range(len(shown))], list(shown), fontsize=8)
        axis.invert_yaxis()
    left.set_xlabel("CPUs of the target: batch work")
    right.set(xlabel="p99 of the target: services, ms", xscale="log")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.savefig(path)
