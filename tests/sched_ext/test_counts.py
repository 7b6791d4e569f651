"""What our scheduler counts for the daemon, beside what tests/host tries of every monitor."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest

from dasec.bpf.extent import Extent
from dasec.bpf.scx import Scheduler, options
from dasec.bpf.wake_edges import BpfEdges
from dasec.hosts.host import HostSettings
from dasec.hosts.sched_ext import SchedExt
from dasec.linux import procfs
from dasec.linux.sched_ext import state
from dasec.model import Level, VcpuId
from dasec.safety.journal.journal import Journal
from guests.waiting import wait_for as wait_until
from tests.contract.stage import probed_with_scheduler, roster

from .machine import HOG, NEEDS_SCHED_EXT, PING_PONG, Vm, identity, wait_for

pytestmark = NEEDS_SCHED_EXT

EXTENT = Extent(Level.FULL, slots=16, edges=16)
CHANGES = 200
MEANWHILE_S = 4.0
ENOUGH, FEW = 50, 10
"""Wake-ups. The two monitors begin and end one after the other."""

READER = """
import os
while True:
    for folder, _, names in os.walk("/usr/share"):
        for name in names:
            try:
                with open(folder + "/" + name, "rb") as file: file.read(4096)
            except OSError: pass
"""
NAPPER = "import time\nwhile True: time.sleep(0.002)"

TOTALS = (attrgetter("wakeups"), attrgetter("chain_ns"))


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(options(2), extent=EXTENT) as loaded:
        yield loaded
    wait_for("disabled")


@pytest.fixture
def monitor(scheduler: Scheduler) -> Iterator[BpfEdges]:
    made = BpfEdges(EXTENT, scheduler)
    yield made
    made.close()


@pytest.fixture
def hog(vms: dict[str, Vm]) -> VcpuId:
    """Alone on a CPU."""
    vms["hog"] = Vm("hog")
    vms["hog"].run(HOG, {1})
    return identity(vms["hog"].programs[0].pid)


def test_a_thread_that_is_changed_while_it_runs_goes_on_running(monitor: BpfEdges, hog: VcpuId) -> None:
    monitor.follow({hog: 0})
    first, began_ns = monitor.read().threads[hog], time.monotonic_ns()
    for turn in range(CHANGES):
        os.setpriority(os.PRIO_PROCESS, hog.tid, turn % 2)
        time.sleep(0.002)
    counted, lasted_ns = monitor.read(), time.monotonic_ns() - began_ns
    then = counted.threads[hog]
    assert then.dispatches - first.dispatches < CHANGES / 2
    assert then.bursts == counted.missed == 0
    had_ns = then.run_ns + then.ready_ns - first.run_ns - first.ready_ns
    assert had_ns == pytest.approx(lasted_ns, rel=0.2)


def test_a_device_wakes_on_behalf_of_nobody(monitor: BpfEdges, vms: dict[str, Vm]) -> None:
    """Whoever reads files is woken by their disk, which interrupts those that compute."""
    vms["one"] = Vm("one")
    for cpu in (0, 1):
        vms["one"].run(HOG, {cpu})
    vms["one"].run(READER)
    hog, beside, reader = (identity(one.pid) for one in vms["one"].programs)
    traced = BpfEdges(EXTENT)
    for each in (monitor, traced):
        each.follow({hog: 0, beside: 0, reader: 0})
    time.sleep(MEANWHILE_S)
    ours, truth = monitor.read(), traced.read()
    traced.close()
    assert truth.threads[reader].external > ENOUGH
    assert ours.threads[reader].external > 0.9 * truth.threads[reader].external - FEW
    assert ours.threads[reader].sibling <= truth.threads[reader].sibling + FEW
    for who in (hog, beside):
        assert ours.threads[who].outward <= truth.threads[who].outward + FEW
        assert ours.threads[who].chain_ns <= truth.threads[who].chain_ns + MEANWHILE_S * 1e9 / 10


def test_a_thread_that_another_scheduling_class_has_is_out_of_sight(
    monitor: BpfEdges, vms: dict[str, Vm]
) -> None:
    vms["napper"] = Vm("napper")
    vms["napper"].run(NAPPER, {1})
    napper = identity(vms["napper"].programs[0].pid)
    monitor.follow({napper: 0})
    os.sched_setscheduler(napper.tid, os.SCHED_FIFO, os.sched_param(1))
    first = monitor.read().threads[napper]
    time.sleep(1)
    then = monitor.read().threads[napper]
    os.sched_setscheduler(napper.tid, os.SCHED_OTHER, os.sched_param(0))
    assert then.timer > first.timer
    assert (then.run_ns, then.ready_ns, then.chain_ns) == (first.run_ns, first.ready_ns, first.chain_ns)
    time.sleep(0.5)
    assert monitor.read().threads[napper].dispatches > then.dispatches


def test_a_monitor_that_is_closed_leaves_the_scheduler_as_it_is(monitor: BpfEdges, hog: VcpuId) -> None:
    monitor.follow({hog: 0})
    for _ in range(2):
        monitor.close()
    assert state() == "enabled"


def test_wake_ups_are_counted_as_before_when_the_scheduler_was_put_out(
    vms: dict[str, Vm], tmp_path: Path
) -> None:
    vms["pair"] = Vm("pair")
    vms["pair"].run(PING_PONG, {1})
    pid = vms["pair"].programs[0].pid
    wait_until(lambda: len(list(procfs.thread_ids(pid))) == 2)
    threads = [VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks) for tid in procfs.thread_ids(pid)]
    journal, _ = Journal.open(tmp_path / "journal")
    host = SchedExt(journal, probed_with_scheduler(), HostSettings(edges=Level.FULL))
    assert "in our scheduler" in host.capabilities.wake_edges_note

    def woken_meanwhile() -> list[int]:
        """How often they were, and how long their chains lasted, from one look to another."""
        looks = []
        for _ in range(2):
            time.sleep(0.5)
            counters = host.observe(roster(threads)).counters.values()
            looks.append([sum(of(one) or 0 for one in counters) for of in TOTALS])
        return [then - now for now, then in zip(*looks, strict=True)]

    host.observe(roster(threads))
    before = woken_meanwhile()
    Path("/proc/sysrq-trigger").write_text("S")
    wait_for("disabled")
    host.observe(roster(threads))
    after = woken_meanwhile()
    assert "in our scheduler" not in host.capabilities.wake_edges_note
    host.close()
    journal.close()
    assert min(*before, *after) > 0, (before, after)
    assert host.notices()
