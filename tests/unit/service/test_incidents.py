"""What befalls host or daemon is one line when it begins and one when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from dasec.budget import Outlay
from dasec.flow import LINES
from dasec.log import Announcer
from dasec.model import Core, Decision, Topology, Vcpu, VcpuId, Workload
from dasec.record.entries import Entry
from dasec.service.host_alerts import CROWD, DEAR_WINDOWS, WINDOW_NS, Incidents

from .periods import STATE, busy_history

PERIOD_NS = 80_000_000
PERIODS = -(-WINDOW_NS // PERIOD_NS)
"""In a window."""


@dataclass
class Daemon:
    """Periods one after the other, as the loop tells them."""

    lines: Callable[[], list[str]]

    def __post_init__(self) -> None:
        self.announcer = Announcer(clock=lambda: self.clock_ns)
        self.incidents = Incidents(1.0, 80, self.announcer)
        self.clock_ns = self.late = 0
        (self.entry,) = busy_history(1)

    def windows(
        self, count: int, *, late: int = 0, cpu_percent: float = 0.5, can_wait: bool = True, rest: int = 1
    ) -> None:
        """So many windows, in each of them so many periods too late."""
        cpu_ns = int(PERIOD_NS * cpu_percent / 100)
        for _ in range(count):
            for at in range(PERIODS):
                self.period(cpu_ns, late if at == 1 else 0, can_wait=can_wait, rest=rest)

    def period(
        self,
        cpu_ns: int = 0,
        late: int = 0,
        *,
        before: int = 0,
        can_wait: bool = True,
        gap_ns: int = 0,
        rest: int = 1,
    ) -> None:
        """`before`: so many of those that are late were over when the look before this one came at last."""
        length_ns = PERIOD_NS * (1 + late - before)
        self.clock_ns += length_ns + gap_ns
        self.late += late + gap_ns // PERIOD_NS
        self.incidents.write(
            self.entry._replace(
                clock_ns=self.clock_ns,
                late_periods=self.late,
                period=replace(self.entry.period, length_ns=length_ns),
                decision=Decision(state=STATE, can_wait=can_wait),
                outlay=Outlay(cpu_ns, rest),
            ),
            STATE,
        )

    def cores(self, *cores: int) -> None:
        topology = Topology(tuple(map(Core, cores)), dict.fromkeys(map(Core, cores), 0))
        self.entry = self.entry._replace(period=replace(self.entry.period, topology=topology))
        self.period()

    def vcpus(self, count: int) -> None:
        allowed = frozenset(self.entry.period.topology.cores)
        workload = Workload("a", 1024, tuple(Vcpu(VcpuId(1, 1 + n, 1), "t", allowed) for n in range(count)))
        self.entry = _with(self.entry, workload)
        self.period()


def _with(entry: Entry, workload: Workload) -> Entry:
    return entry._replace(period=replace(entry.period, workloads=(workload,)))


@pytest.fixture
def daemon(caplog: pytest.LogCaptureFixture) -> Daemon:
    caplog.set_level("INFO", "dasec")
    return Daemon(lambda: caplog.messages)


def test_a_host_that_leaves_the_daemon_no_core_is_called_overloaded_until_periods_come_in_time(
    daemon: Daemon,
) -> None:
    daemon.windows(1)
    daemon.windows(3, late=30)
    assert daemon.lines() == [
        "host overloaded: 48 % of the periods came too late and were skipped"
        " (of a core, the daemon used 0.3 %): corrections come later"
    ]
    assert daemon.announcer.troubles == tuple(daemon.lines())
    daemon.windows(2)
    assert daemon.lines()[1:] == ["periods come in time again"]


def test_where_looks_come_late_themselves_no_more_periods_are_late_than_there_are(daemon: Daemon) -> None:
    daemon.period()
    daemon.period(late=60, before=60)
    daemon.windows(1, late=10)
    assert daemon.lines() == [
        "host overloaded: 57 % of the periods came too late and were skipped"
        " (of a core, the daemon used 0.4 %): corrections come later"
    ]


def test_a_late_period_now_and_then_is_no_line(daemon: Daemon) -> None:
    daemon.windows(5, late=4)
    assert daemon.lines() == []


def test_a_minute_of_suspension_is_no_overload(daemon: Daemon) -> None:
    daemon.windows(1)
    daemon.period(gap_ns=60_000_000_000)
    daemon.windows(2)
    assert daemon.lines() == []


def test_a_budget_that_is_exceeded_for_long_is_one_line_with_the_way_out(daemon: Daemon) -> None:
    daemon.windows(DEAR_WINDOWS + 3, cpu_percent=4.0, can_wait=False)
    assert daemon.lines() == [
        "the daemon takes 4.0 % of a core, above budget_percent = 1: this policy has to look every period:"
        " give it more, or a longer period_ms"
    ]
    daemon.windows(2, cpu_percent=0.5)
    assert daemon.lines()[1:] == ["within budget_percent = 1 again"]


def test_where_looks_are_as_rare_as_they_get_fewer_vcpus_are_the_way_out(daemon: Daemon) -> None:
    daemon.windows(DEAR_WINDOWS + 1, cpu_percent=4.0, rest=20)
    assert daemon.lines() == [
        "the daemon takes 4.0 % of a core, above budget_percent = 1, although it looks every 1600 ms only:"
        " manage fewer vCPUs"
    ]


def test_spending_what_was_saved_is_no_excess(daemon: Daemon) -> None:
    daemon.windows(DEAR_WINDOWS - 1, cpu_percent=4.0)
    daemon.windows(3)
    assert daemon.lines() == []


def test_cpus_that_go_offline_are_named_until_all_are_back(daemon: Daemon) -> None:
    daemon.cores(0, 1, 2, 3)
    daemon.cores(0, 1)
    daemon.cores(0, 1)
    assert daemon.lines() == ["offline: CPU 2-3: vCPUs run on the 2 others"]
    daemon.cores(0, 1, 2, 3)
    assert daemon.lines()[1:] == ["every CPU is online again"]


def test_thousands_of_threads_at_once_are_one_line(daemon: Daemon) -> None:
    for count in (8, 8, 8 + CROWD, 9 + CROWD):
        daemon.vcpus(count)
    assert daemon.lines() == []
    daemon.vcpus(9 + CROWD)
    assert daemon.lines() == ["workload a: 1009 vCPUs, 8 before: all that its bound allows are managed"]
    daemon.vcpus(10 + CROWD)
    daemon.period()
    assert len(daemon.lines()) == 1


def test_a_workload_that_grows_and_shrinks_by_thousands_again_and_again_is_a_few_lines(
    daemon: Daemon,
) -> None:
    for _ in range(100):
        daemon.vcpus(8)
        daemon.vcpus(8 + CROWD)
        daemon.vcpus(8 + CROWD)
    assert len(daemon.lines()) == LINES
