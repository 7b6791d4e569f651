"""execve by a thread that is not the main one: it gets the main thread's number and start time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.linux import affinity, procfs, schedattr
from dasec.model import Change, Core, Knob, KnobValue, Outcome, VcpuId
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, roster

from .threads import Threads, threads

pytestmark = pytest.mark.host

EXEC = "import os; os.execv('/bin/sleep', ['sleep', '1000'])"


@pytest.fixture(params=[True, False], ids=["BPF", "procfs"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MainlineStage]:
    """The mainline host with either sampler."""
    made = MainlineStage(tmp_path, dry_run=False, bpf=request.param)
    yield made
    made.close()


def write(stage: MainlineStage, vcpu: VcpuId, knob: Knob, new: KnobValue) -> None:
    (result,) = stage.mainline.apply([Change(vcpu, knob, new, new, "test")])
    assert result.outcome is Outcome.APPLIED


def call_execve(family: Threads) -> None:
    """The first thread that the main one started does; then it has the main one's number."""
    family.order(0, EXEC)
    wait_for(lambda: procfs.read_stat(family.main.pid, family.main.pid).comm == "sleep")
    assert procfs.read_stat(*family.main[:2]).start_ticks == family.main.start_ticks


def test_the_own_pin_of_a_thread_that_calls_execve_stays(either: MainlineStage) -> None:
    """The main thread, whose number it has now, had the same mask of us."""
    with threads() as family:
        child = family.start()
        os.sched_setaffinity(child.tid, {1})
        either.mainline.observe(roster([family.main, child]))
        write(either, family.main, Knob.AFFINITY, frozenset({Core(1)}))
        either.mainline.observe(roster([family.main, child]))
        call_execve(family)
        for _ in range(3):
            either.mainline.observe(roster([family.main]))
        either.mainline.restore()
        assert affinity.get(family.main.tid) == (1,)
        assert either.journal.outstanding() == ()


@pytest.mark.parametrize("looked", [True, False])
def test_what_we_held_of_a_thread_that_calls_execve_goes_back(either: MainlineStage, looked: bool) -> None:
    """Whether it is seen, or everything is put back at once, by what the journal says."""
    with threads() as family:
        child = family.start()
        os.sched_setaffinity(family.main.tid, {0})
        either.mainline.observe(roster([family.main, child]))
        write(either, child, Knob.AFFINITY, frozenset({Core(1)}))
        write(either, child, Knob.RESCHEDULING_LATENCY, 4_000_000)
        write(either, family.main, Knob.RESCHEDULING_LATENCY, 5_000_000)
        write(either, family.main, Knob.AFFINITY, frozenset({Core(0)}))
        either.mainline.observe(roster([family.main, child]))
        call_execve(family)
        assert affinity.get(family.main.tid) == (1,)
        if looked:
            for _ in range(3):
                (workload,) = either.mainline.observe(roster([family.main])).workloads
            assert [one.allowed for one in workload.vcpus] == [{Core(0), Core(1)}]
        either.mainline.restore()
        assert affinity.get(family.main.tid) == (0, 1)
        assert schedattr.get(family.main.tid).slice_ns == schedattr.default_slice_ns()
        assert either.journal.outstanding() == ()
