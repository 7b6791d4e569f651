"""Blame, times and edges of real loads against a full trace of the same run."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from dasec.bpf.extent import Extent
from dasec.bpf.wake_edges import BpfEdges
from dasec.lab.load_tool import find_tool
from dasec.linux import procfs
from dasec.model import Level, VcpuId
from tests.stopwatch import stolen_s

from .schedtrace import Recorder, evaluate

pytestmark = pytest.mark.host

TOLERANCE = 0.02
"""The two programs at one tracepoint take their times one after the other."""

ENOUGH_NS = 2_000_000
"""Below this a thread's share of the difference in time stamps is more than the tolerance."""

LEADS_NS = (1_000_000_000, 5_000_000_000, 25_000_000_000, 125_000_000_000)
"""Between the start of the process and its load, longer where it began before all was ready:
all threads sleep when they are followed."""

LOADS = {
    "fanout": ["--variant", "fanout", "--helpers", "3", "--rate", "150"],
    "imbalanced": ["--variant", "fanout", "--helpers", "2", "--imbalance", "4", "--wake", "eventfd"],
    "convoy": ["--variant", "convoy", "--helpers", "4", "--rate", "150"],
    "pipeline": ["--variant", "pipeline", "--stages", "3", "--rate", "150"],
    "chatty": ["--variant", "fanout", "--background-wakes", "logger"],
}
BACKGROUND = ["--background", "2", "--background-burst-us", "5000", "--background-rate", "40"]


class Run:
    """One load, seen by the monitor and by the recorder."""

    def __init__(self, options: list[str]) -> None:
        assert any(self._is_seen(options, lead_ns) for lead_ns in LEADS_NS), "it always began too early"

    def _is_seen(self, options: list[str], lead_ns: int) -> bool:
        """Whether it was followed from its beginning; else it shows nothing, and no number of it counts."""
        recorder, monitor = Recorder(), BpfEdges(Extent(Level.FULL, slots=32, edges=64))
        stolen_before_s = stolen_s()
        try:
            followed = self._under(monitor, options, lead_ns)
            if followed is None:
                return False
            ids, since_ns = followed
            reading = monitor.read()
            self.truth = evaluate(recorder.events(), ids.keys(), since_ns)
        finally:
            monitor.close()
            recorder.close()
        self.stolen_ns = int((stolen_s() - stolen_before_s) * 1e9)
        self.threads = {tid: reading.threads[who] for tid, who in ids.items()}
        self.edges = {(one.tid, other.tid): edge.wakeups for (one, other), edge in reading.edges.items()}
        self.lost, self.missed = reading.lost, reading.missed
        return True

    @staticmethod
    def _under(monitor: BpfEdges, options: list[str], lead_ns: int) -> tuple[dict[int, VcpuId], int] | None:
        """Runs the load, followed from when its threads exist, to its end. None: it began too early."""
        start_ns = time.monotonic_ns() + lead_ns
        start = ["--start-at-ns", str(start_ns)]
        command = [str(find_tool()), "service", "--seconds", "1.5", "--warmup", "0", "--seed", "7", *start]
        load = subprocess.Popen([*command, *options, *BACKGROUND], stdout=subprocess.PIPE, text=True)
        assert load.stdout is not None
        ready = load.stdout.readline()
        if not ready:  # it has said that its start is past
            load.communicate()
            return None
        assert "ready" in json.loads(ready)
        ids = {
            tid: VcpuId(load.pid, tid, procfs.read_stat(load.pid, tid).start_ticks)
            for tid in procfs.thread_ids(load.pid)
        }
        monitor.follow(dict.fromkeys(ids.values(), 0))
        followed_ns = time.monotonic_ns()
        if followed_ns >= start_ns:
            load.kill()
            load.communicate()
            return None
        load.communicate()
        return ids, followed_ns


def agree(counted: dict[int, int], truth: dict[int, int], stolen_ns: int) -> None:
    """Each thread's time, and the sum over all of them. What the hypervisor stole between two time stamps
    of one event is a difference that neither program can help."""
    differ_ns = ENOUGH_NS + stolen_ns
    assert sum(counted.values()) == pytest.approx(sum(truth.values()), rel=TOLERANCE, abs=differ_ns)
    for tid, ns in counted.items():
        assert ns == pytest.approx(truth.get(tid, 0), rel=TOLERANCE, abs=differ_ns)


@pytest.mark.timing
@pytest.mark.parametrize("options", LOADS.values(), ids=LOADS)
def test_what_the_monitor_counts_is_what_a_full_trace_shows(options: list[str]) -> None:
    run = Run(options)
    threads, truth = run.threads, run.truth
    assert run.lost == 0
    assert run.missed == truth.missed
    assert run.edges == truth.edges
    assert {tid: one.sibling for tid, one in threads.items() if one.sibling} == truth.sibling
    assert sum(truth.blame_ns.values()) > ENOUGH_NS, "the load blamed nobody, so the test shows nothing"
    agree({tid: one.blame_ns for tid, one in threads.items()}, truth.blame_ns, run.stolen_ns)
    agree({tid: one.ready_ns for tid, one in threads.items()}, truth.ready_ns, run.stolen_ns)
    agree({tid: one.run_ns for tid, one in threads.items()}, truth.run_ns, run.stolen_ns)
    agree({tid: one.sleep_ns for tid, one in threads.items()}, truth.sleep_ns, run.stolen_ns)
    for tid, one in threads.items():
        assert one.preemptions == pytest.approx(truth.preemptions.get(tid, 0), abs=2)
