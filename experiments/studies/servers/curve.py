"""How many VMs of a server a host holds at the same p99, by arm: cells of one file, alike but for that."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dasec.lab.kit.arms import CONTROL, NONE
from dasec.lab.kit.results import RunResult

from ...results.effects import percent
from ...results.markdown import markdown_table
from ...results.store import Done, done_in

ARMS: Mapping[str, tuple[str, str]] = {
    NONE: ("plain", "#999999"),
    CONTROL: ("plain again", "#CCCCCC"),
    "critical": ("`critical`", "#0072B2"),
    "scx": ("`dasec scx`", "#D55E00"),
}
"""Names and colours."""

FILES = ("memcached-curve", "nginx-curve", "masstree-curve")
TIMES_ALONE = (2, 5)
"""Limits, over the p99 of one VM that has the host to itself. The paper's DASEC has 1.97 times at its highest
ratio, Linux five times (section 2, Figure 1)."""


@dataclass(frozen=True, slots=True)
class Point:
    """A host with so many VMs."""

    block: Done

    @property
    def vms(self) -> int:
        return len(self.block.of(NONE).tenants)

    @property
    def busy(self) -> float:
        """Part of the CPUs that services used, on the plain kernel."""
        return self.block.of(NONE).busy

    def p99_ms(self, arm: str) -> float:
        """Mean of the VMs'."""
        return statistics.mean(_p99s_ms(self.block.of(arm)))

    def worst_ms(self, arm: str) -> float:
        """Of the VM that has the highest."""
        return max(_p99s_ms(self.block.of(arm)))


def points(file: Path) -> tuple[Point, ...]:
    """By their number of VMs."""
    blocks = done_in(file.read_text(encoding="utf-8").splitlines())
    return tuple(sorted(map(Point, blocks), key=lambda one: one.vms))


def most_vms(found: tuple[Point, ...], arm: str, limit_ms: float) -> int:
    """So many that neither this host nor one with fewer has a VM above the limit; 0: not even the first."""
    most = 0
    for one in found:
        if one.worst_ms(arm) > limit_ms:
            break
        most = one.vms
    return most


def table(found: tuple[Point, ...]) -> str:
    """p99 in ms by number of VMs, mean and worst VM."""
    head = ["VMs", "busy", *(name for name, _ in ARMS.values())]
    return markdown_table(head, [list(_row(one)) for one in found])


def _row(one: Point) -> Iterator[str]:
    yield str(one.vms)
    yield percent(one.busy)
    yield from (f"{one.p99_ms(arm):.2f}, {one.worst_ms(arm):.2f}" for arm in ARMS)


def limits_ms(found: tuple[Point, ...]) -> list[float]:
    """TIMES_ALONE as times: of a host with one VM on the plain kernel."""
    return [times * found[0].p99_ms(NONE) for times in TIMES_ALONE]


def held(servers: Mapping[str, tuple[Point, ...]]) -> str:
    """The most VMs of each server at each limit."""
    head = ["server", "p99 of each VM at most", *(name for name, _ in ARMS.values())]
    rows = [
        [server, f"{times} × alone, {limit:.2g} ms", *(str(most_vms(found, arm, limit)) for arm in ARMS)]
        for server, found in servers.items()
        for times, limit in zip(TIMES_ALONE, limits_ms(found), strict=True)
    ]
    return markdown_table(head, rows)


def draw(servers: Mapping[str, tuple[Point, ...]], path: Path) -> None:
    """p99 over the number of VMs, a panel a server: a line through the means, up to the worst VM."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure = Figure(figsize=(1 + 4 * len(servers), 4.2), dpi=110, layout="constrained")
    (panels,) = figure.subplots(1, len(servers), squeeze=False)
    for axes, (server, found) in zip(panels, servers.items(), strict=True):
        vms = [one.vms for one in found]
        for arm, (name, colour) in ARMS.items():
            means = [one.p99_ms(arm) for one in found]
            axes.plot(vms, means, marker="o", color=colour, label=name.strip("`"))
            axes.fill_between(vms, means, [one.worst_ms(arm) for one in found], color=colour, alpha=0.15)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xticks(vms, [f"{one.vms}\n{one.busy:.0%}" for one in found])
        axes.set_title(server)
        axes.grid(axis="y", alpha=0.3)
    figure.supxlabel("VMs on eight CPUs, and how busy these are")
    figure.supylabel("p99, ms: mean, and up to the worst VM")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(ARMS))
    figure.savefig(path)


def _p99s_ms(run: RunResult) -> list[float]:
    return [one.value("p99") / 1e6 for one in run.tenants]
