"""Do the knobs do on this kernel what the model says they do?"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from dasec.hosts.dummy import spinner
from dasec.hosts.mainline import Mainline
from dasec.linux import affinity, procfs
from dasec.model import Change, Core, Counters, Knob, Outcome, ThreadState, VcpuId
from dasec.safety.journal import Journal
from tests.contract.stage import not_niced, probed, roster
from tests.load.tool import Running

from .group import TestGroup

pytestmark = [pytest.mark.host, pytest.mark.timing]

MS = 1_000_000
SECONDS = 2.0
LOAD = Path(__file__).resolve().parents[2] / "experiments/load/build/dasec-load"


@pytest.fixture
def group() -> Iterator[TestGroup]:
    made = TestGroup("effect")
    yield made
    made.close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Mainline]:
    journal, _ = Journal.open(tmp_path)
    made = Mainline(journal, probed(), own_groups=True)
    yield made
    made.close()
    journal.close()


@pytest.fixture
def cpu() -> int:
    return affinity.get(0)[-1]


def identify(tid: int, pid: int) -> VcpuId:
    return VcpuId(pid, tid, procfs.read_stat(pid, tid).start_ticks)


def set_knob(host: Mainline, knob: Knob, values: dict[VcpuId, int]) -> None:
    results = host.apply([Change(vcpu, knob, value, value, "test") for vcpu, value in values.items()])
    assert {result.outcome for result in results} == {Outcome.APPLIED}, results


def on_cpu_ns(vcpu: VcpuId) -> int:
    return procfs.parse_schedstat(procfs.read_bytes(f"/proc/{vcpu.pid}/task/{vcpu.tid}/schedstat"))[0]


def share_ratio(one: VcpuId, two: VcpuId) -> float:
    before = on_cpu_ns(one), on_cpu_ns(two)
    time.sleep(SECONDS)
    return (on_cpu_ns(one) - before[0]) / (on_cpu_ns(two) - before[1])


def test_a_weight_ten_percent_higher_gives_ten_percent_more_time(
    host: Mainline, group: TestGroup, cpu: int
) -> None:
    with ExitStack() as hogs:
        pids = [hogs.enter_context(spinner(cpu)) for _ in range(2)]
        for pid in pids:
            not_niced(pid)
            group.enter(pid)
        one, two = (identify(pid, pid) for pid in pids)
        host.observe(roster([one, two]))
        ratios = []
        for first, second in ((1126, 1024), (1024, 1126)):
            set_knob(host, Knob.WEIGHT, {one: first, two: second})
            time.sleep(0.1)
            ratios.append(share_ratio(one, two))
        assert (ratios[0] / ratios[1]) ** 0.5 == pytest.approx(1126 / 1024, rel=0.01)
        host.restore()


def late_wakeups_us(host: Mainline, group: TestGroup, cpu: int, slices_ns: tuple[int, int] | None) -> float:
    """95th percentile of the wake-up latency of one thread beside three hogs."""
    command = [
        str(LOAD),
        "wakeup",
        "--cpu",
        str(cpu),
        "--hogs",
        "3",
        "--seconds",
        "1.5",
        "--settle-ms",
        "300",
    ]
    run = Running(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    pid, waker, hogs = run.ready["pid"].integer(), run.ready["waker"].integer(), run.ready["hogs"].integers()
    not_niced(pid)
    group.enter(pid)
    vcpus = [identify(tid, pid) for tid in (waker, *hogs)]
    host.observe(roster(vcpus))
    if slices_ns is not None:
        first, others = slices_ns
        set_knob(host, Knob.RESCHEDULING_LATENCY, {vcpus[0]: first} | dict.fromkeys(vcpus[1:], others))
    return run.end()["latency_ns"]["p95"].number() / 1000


@pytest.mark.skipif(not LOAD.exists(), reason="the load tool is not built: make -C experiments/load")
def test_a_shorter_slice_than_the_runners_gets_a_woken_thread_its_core_at_once(
    host: Mainline, group: TestGroup, cpu: int
) -> None:
    default, lead = [], []
    for _ in range(3):
        default.append(late_wakeups_us(host, group, cpu, None))
        lead.append(late_wakeups_us(host, group, cpu, (100_000, 100 * MS)))
    assert statistics.median(lead) * 5 < statistics.median(default), (lead, default)


def test_a_mask_moves_a_running_thread(host: Mainline, group: TestGroup) -> None:
    cores = affinity.get(0)
    if len(cores) < 2:
        pytest.skip("needs two CPUs")
    with spinner(cores[0]) as pid:
        affinity.put(pid, ())
        group.enter(pid)
        vcpu = identify(pid, pid)
        host.observe(roster([vcpu]))
        for core in (*cores, *cores):
            mask = frozenset({Core(core)})
            (result,) = host.apply([Change(vcpu, Knob.AFFINITY, mask, mask, "test")])
            assert result.outcome is Outcome.APPLIED
            time.sleep(0.1)
            assert host.observe(roster([vcpu])).counters[vcpu].core == core


def looks(host: Mainline, vcpus: Sequence[VcpuId]) -> Iterator[Mapping[VcpuId, Counters]]:
    """Thirty looks, at times that no tick knows."""
    for _ in range(30):
        yield host.observe(roster(vcpus)).counters
        time.sleep(0.013)


def test_a_hog_runs_and_of_two_hogs_on_a_core_one_is_ready(host: Mainline, group: TestGroup) -> None:
    cores = affinity.get(0)
    if len(cores) < 2:
        pytest.skip("needs two CPUs: we must not be on the hogs'")
    before = affinity.get(0)
    affinity.put(0, (cores[0],))
    try:
        with spinner(cores[1]) as one:
            vcpu = identify(one, one)
            alone = list(looks(host, [vcpu]))
            first = alone[-1][vcpu]
            with spinner(cores[1]) as two:
                both = [vcpu, identify(two, two)]
                together = list(looks(host, both))
                second = together[-1]
        assert any(counters[vcpu].state is ThreadState.RUNNING for counters in alone)
        ready = [sum(one.state is ThreadState.READY for one in counters.values()) for counters in together]
        assert sum(ready) >= len(together), "of two on a core one waits at any time"
        assert second[vcpu].on_cpu_ns > first.on_cpu_ns
        assert second[vcpu].ready_ns > first.ready_ns
    finally:
        affinity.put(0, before)
