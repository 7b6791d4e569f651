"""What befalls the host or the daemon, in lines for an operator: no core, too dear, CPUs gone, a crowd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..linux import cpulist
from ..log import Announcer
from ..model import Core, PolicyState, Topology, Workload
from ..record.entries import Entry
from .status import ABOVE_BUDGET

WINDOW_NS = 5_000_000_000
"""What is judged by rates is judged over so long: 62 periods of 80 ms."""

LATE_PERCENT = 20
"""A host that keeps the daemon from so many of its periods is overloaded. Chosen: with a fifth of the
corrections missing, steps of load are still answered within the 25 periods asked for."""

WELL_PERCENT = 10
"""And is no more, when there are fewer than half of that."""

DEAR = 1.5
"""Times the budget. A look more or less in a window is no excess."""

DEAR_WINDOWS = 4
"""In a row, 20 s: what was saved up (budget.SAVED_NS) allows half a budget more for so long, no longer."""

CROWD = 1000
"""So many more vCPUs are worth a line: about what one look of a few milliseconds can follow."""


class Window(NamedTuple):
    """What has added up since `clock_ns`. `awaited`: periods for whose end the daemon slept."""

    clock_ns: int
    late_before: int
    cpu_ns: int = 0
    awaited: int = 0


class Incidents:
    """Announces each when it begins and when it ends."""

    def __init__(self, budget_percent: float, period_ms: int, announcer: Announcer) -> None:
        self._budget_percent, self._period_ns = budget_percent, period_ms * 1_000_000
        self._announcer = announcer
        self._window: Window | None = None
        self._clock_ns = self._rest = 0
        self._overloaded = False
        self._dear_windows = 0
        self._topology: Topology | None = None
        self._cores: frozenset[Core] = frozenset()
        self._workloads: Sequence[Workload] = ()
        self._vcpus: Mapping[str, tuple[int, int]] = {}
        """By workload: how many there were before it began to grow, and how many there are."""

    def write(self, entry: Entry, before: PolicyState) -> None:  # noqa: ARG002  # the interface of witnesses
        """After each period."""
        period = entry.period
        if period.topology is not self._topology:
            self._topology = period.topology
            self._look_at_cores(frozenset(period.topology.cores))
        if period.workloads is not self._workloads or self._is_growing():
            self._workloads = period.workloads
            self._look_at_crowds(period.workloads)
        self._add_up(entry)

    def _look_at_cores(self, cores: frozenset[Core]) -> None:
        missing = self._cores - cores
        self._cores |= cores
        gone = f"offline: CPU {cpulist.render(missing)}: vCPUs run on the {len(cores)} others"
        self._announcer.state("cores", gone if missing else None, "every CPU is online again")

    def _is_growing(self) -> bool:
        return any(calm < now for calm, now in self._vcpus.values())

    def _look_at_crowds(self, workloads: Sequence[Workload]) -> None:
        """Thousands are adopted over several looks: they are one line when no more come."""
        vcpus: dict[str, tuple[int, int]] = {}
        for workload in workloads:
            name, now = workload.name, len(workload.vcpus)
            calm, then = self._vcpus.get(name, (0, 0))
            if now <= then and then - calm >= CROWD:
                line = f"workload {name}: {then} vCPUs, {calm} before: all that its bound allows are managed"
                self._announcer.note(line, f"workload {name}: thousands of vCPUs that came")
            vcpus[name] = (calm, now) if now > then else (now, now)
        self._vcpus = vcpus

    def _add_up(self, entry: Entry) -> None:
        """A window ends when it is long enough, and is dropped if the time in it was no period."""
        window, follows = self._window, entry.clock_ns - self._clock_ns == entry.period.length_ns
        awaited, self._clock_ns, self._rest = self._rest, entry.clock_ns, entry.outlay.rest
        if window is None or not follows:
            self._window = Window(entry.clock_ns, entry.late_periods)
            return
        self._window = window = window._replace(
            cpu_ns=window.cpu_ns + entry.outlay.cpu_ns, awaited=window.awaited + awaited
        )
        if entry.clock_ns - window.clock_ns >= WINDOW_NS:
            self._judge(entry, window)
            self._window = Window(entry.clock_ns, entry.late_periods)

    def _judge(self, entry: Entry, window: Window) -> None:
        elapsed_ns = entry.clock_ns - window.clock_ns
        cost_percent = 100 * window.cpu_ns / elapsed_ns
        late = entry.late_periods - window.late_before
        late_percent = 100 * late / (window.awaited + late)  # not of the time: a look comes late itself
        self._say_load(late_percent, cost_percent)
        self._dear_windows = self._dear_windows + 1 if cost_percent > DEAR * self._budget_percent else 0
        if self._dear_windows == DEAR_WINDOWS:
            self._announcer.state("budget", self._excess(entry, cost_percent))
        elif self._dear_windows == 0:
            self._announcer.state("budget", None, f"within budget_percent = {self._budget_percent:g} again")

    def _say_load(self, late_percent: float, cost_percent: float) -> None:
        if late_percent >= LATE_PERCENT and not self._overloaded:
            self._overloaded = True
            trouble = (
                f"host overloaded: {late_percent:.0f} % of the periods came too late and were skipped"
                f" (of a core, the daemon used {cost_percent:.1f} %): corrections come later"
            )
            self._announcer.state("load", trouble)
        elif late_percent < WELL_PERCENT and self._overloaded:
            self._overloaded = False
            self._announcer.state("load", None, "periods come in time again")

    def _excess(self, entry: Entry, cost_percent: float) -> str:
        above = f"the daemon takes {cost_percent:.1f} % of a core, {ABOVE_BUDGET} = {self._budget_percent:g}"
        if entry.decision.can_wait:
            every_ms = entry.outlay.rest * self._period_ns // 1_000_000
            return f"{above}, although it looks every {every_ms} ms only: manage fewer vCPUs"
        return f"{above}: this policy has to look every period: give it more, or a longer period_ms"
