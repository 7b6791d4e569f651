"""rKube's figure 12 with drawn machines: what each arm does to services and batch work, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dasec.lab.kit.ratios import geometric_mean

from ...results.markdown import markdown_table
from .runs import ARMS, RESULTS, Seen, kept

FILE = "trace"
PICTURE = RESULTS / "machines.png"
COMPARED = ("none-again", "critical", "strict", "scx")
COLOURS = {"none-again": "#cccccc", "critical": "#0072B2", "strict": "#D55E00", "scx": "#009E73"}


class Change(NamedTuple):
    """Under an arm, over the plain kernel on the same machine."""

    mean: float
    p99: float
    requests: float
    batch: float

    @classmethod
    def between(cls, plain: Seen, run: Seen) -> Change:
        """Of two runs of a machine."""
        return cls(
            run.mean_ms / plain.mean_ms,
            run.p99_ms / plain.p99_ms,
            run.requests / plain.requests,
            run.other_cores / plain.other_cores,
        )


def changes() -> Mapping[str, Sequence[Change]]:
    """Of each arm, the machines one after the other."""
    by_number = sorted(kept(FILE).items(), key=lambda one: int(one[0].rsplit("-", 1)[1]))
    machines = [runs for _, runs in by_number]
    return {arm: [Change.between(runs["none"], runs[arm]) for runs in machines] for arm in COMPARED}


def table() -> str:
    """A row for each arm: geometric means over all machines, with the least and the most."""
    head = (
        "arm",
        "mean over plain",
        "p99 over plain",
        "machines with a lower p99",
        "requests done",
        "CPU of batch work",
    )
    return markdown_table(head, (_row(ARMS[arm], found) for arm, found in changes().items()))


def _row(name: str, found: Sequence[Change]) -> Sequence[str]:
    def spread(values: Sequence[float]) -> str:
        return f"{geometric_mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    means, p99s, requests, batch = zip(*found, strict=True)
    lower = sum(p99 < 1 for p99 in p99s)
    return name, spread(means), spread(p99s), f"{lower} of {len(found)}", spread(requests), spread(batch)


def draw(path: Path) -> None:
    """p99 and batch work over plain, a point for each machine and arm."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for arm, found in changes().items():
        for axis, values in ((left, [one.p99 for one in found]), (right, [one.batch for one in found])):
            axis.plot(
                range(1, 1 + len(found)), values, "o", color=COLOURS[arm], label=ARMS[arm].replace("`", "")
            )
    for axis, what in ((left, "p99 of the services"), (right, "CPU time of the batch work")):
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(xlabel="machine", title=f"{what}, over plain")
    left.set_yscale("log")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    figure.savefig(path)
