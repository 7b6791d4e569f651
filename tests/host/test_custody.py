"""What is held stays held until it is back: threads that leave the fair class, fail, end, come again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.hosts.host import HostSettings
from dasec.hosts.mainline import Mainline
from dasec.hosts.threads.host import RETRY_PERIODS, ThreadsHost
from dasec.knobs.groups import CGROUP
from dasec.knobs.knob import KnobRef, NativeKnob, NativeValue
from dasec.knobs.masks import AFFINITY
from dasec.knobs.slices import SLICE
from dasec.knobs.table import TABLE
from dasec.knobs.weights import WEIGHT_V1, WEIGHT_V2
from dasec.linux import affinity, schedattr
from dasec.model import THREAD_KNOBS, Change, Core, Knob, KnobValue, Outcome, VcpuId
from dasec.safety.journal.journal import Journal
from dasec.safety.kernel import LinuxKernel
from dasec.safety.restore import put_all_back, recover
from dasec.safety.verify import verify
from tests.contract.stage import MainlineStage, probed, roster
from tests.contract.test_host import NEW

from .threads import threads

pytestmark = pytest.mark.host

BOTH = frozenset({Core(0), Core(1)})


@pytest.fixture(params=[True, False], ids=["BPF", "procfs"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MainlineStage]:
    """The mainline host with either sampler."""
    made = MainlineStage(tmp_path, dry_run=False, bpf=request.param)
    yield made
    made.close()


def write(host: ThreadsHost, vcpu: VcpuId, *knobs: Knob) -> None:
    results = host.apply([Change(vcpu, knob, NEW[knob], NEW[knob], "test") for knob in knobs])
    assert [one.outcome for one in results] == [Outcome.APPLIED] * len(knobs)


def write_one(host: ThreadsHost, vcpu: VcpuId, knob: Knob, new: KnobValue) -> Outcome:
    (result,) = host.apply([Change(vcpu, knob, new, new, "test")])
    return result.outcome


def turn(vcpu: VcpuId, policy: int) -> None:
    os.sched_setscheduler(vcpu.tid, policy, os.sched_param(1 if policy == os.SCHED_FIFO else 0))


def look(stage: MainlineStage, vcpu: VcpuId, times: int = RETRY_PERIODS) -> None:
    for _ in range(times):
        stage.mainline.observe(roster([vcpu]))


def still_held(stage: MainlineStage) -> list[NativeKnob]:
    return [one.ref.kind for one in stage.journal.outstanding()]


def test_all_knobs_of_a_thread_that_turns_idle_go_back_at_once(either: MainlineStage) -> None:
    vcpu = either.spawn()
    before = either.held_by_kernel(vcpu)
    look(either, vcpu, 1)
    write(either.mainline, vcpu, *THREAD_KNOBS)
    turn(vcpu, os.SCHED_IDLE)
    look(either, vcpu, 1)
    assert vcpu not in either.mainline.observe(roster([vcpu])).knobs
    assert either.held_by_kernel(vcpu) == before
    assert (either.group_of(vcpu), either.own_groups()) == ("/", [])
    assert still_held(either) == []
    assert os.sched_getscheduler(vcpu.tid) == os.SCHED_IDLE


def test_a_thread_that_comes_back_has_nothing_of_ours_for_its_own(either: MainlineStage) -> None:
    """Also with a neutral weight that is the one before us: a policy starts from what it is shown."""
    vcpu = either.spawn()
    before = either.held_by_kernel(vcpu)
    first = either.mainline.observe(roster([vcpu])).knobs[vcpu]
    for _ in range(2):
        write(either.mainline, vcpu, *THREAD_KNOBS)
        turn(vcpu, os.SCHED_IDLE)
        look(either, vcpu)
        turn(vcpu, os.SCHED_OTHER)
        look(either, vcpu)
        assert either.mainline.observe(roster([vcpu])).knobs[vcpu] == first
        assert either.held_by_kernel(vcpu) == before
    write(either.mainline, vcpu, *THREAD_KNOBS)
    either.mainline.restore()
    assert either.held_by_kernel(vcpu) == before


def test_nice_and_reset_on_fork_of_an_idle_thread_outlive_the_return_of_its_slice(
    stage: MainlineStage,
) -> None:
    vcpu = stage.spawn()
    os.setpriority(os.PRIO_PROCESS, vcpu.pid, 7)
    look(stage, vcpu, 1)
    write(stage.mainline, vcpu, Knob.RESCHEDULING_LATENCY)
    turn(vcpu, os.SCHED_IDLE | os.SCHED_RESET_ON_FORK)
    look(stage, vcpu, 1)
    assert still_held(stage) == []
    assert os.sched_getscheduler(vcpu.tid) == os.SCHED_IDLE | os.SCHED_RESET_ON_FORK
    assert os.getpriority(os.PRIO_PROCESS, vcpu.pid) == 7


def test_a_thread_that_has_just_turned_idle_is_not_written_to(stage: MainlineStage) -> None:
    """The kernel would take the slice of neither, but it refuses only real-time threads."""
    vcpu = stage.spawn()
    look(stage, vcpu, 1)
    before = stage.held_by_kernel(vcpu)
    turn(vcpu, os.SCHED_IDLE)
    for knob in THREAD_KNOBS:
        assert write_one(stage.mainline, vcpu, knob, NEW[knob]) is Outcome.REJECTED
    with pytest.raises(OSError, match="not in a fair scheduling class"):
        schedattr.set_slice(vcpu.tid, 4_000_000)
    assert stage.held_by_kernel(vcpu) == before


def test_the_slice_of_a_real_time_thread_is_held_until_it_is_fair_again(either: MainlineStage) -> None:
    vcpu = either.spawn()
    before = either.held_by_kernel(vcpu)
    look(either, vcpu, 1)
    write(either.mainline, vcpu, Knob.RESCHEDULING_LATENCY, Knob.AFFINITY)
    turn(vcpu, os.SCHED_FIFO)
    look(either, vcpu)
    assert (either.held_by_kernel(vcpu).affinity, still_held(either)) == (before.affinity, [SLICE])
    (waiting,) = either.mainline.restore().waiting
    assert "held until it is fair again" in waiting
    turn(vcpu, os.SCHED_OTHER)
    assert either.held_by_kernel(vcpu).rescheduling_latency_ns == NEW[Knob.RESCHEDULING_LATENCY]
    look(either, vcpu, 1)
    assert (either.held_by_kernel(vcpu), still_held(either)) == (before, [])


def test_a_real_time_thread_that_ends_is_held_no_longer(stage: MainlineStage) -> None:
    vcpu = stage.spawn()
    look(stage, vcpu, 1)
    write(stage.mainline, vcpu, Knob.RESCHEDULING_LATENCY)
    turn(vcpu, os.SCHED_FIFO)
    look(stage, vcpu, 1)
    assert still_held(stage) == [SLICE]
    stage.end(vcpu)
    look(stage, vcpu, 1)
    assert still_held(stage) == []


def test_a_crowd_that_turns_idle_or_real_time_and_ends_leaves_no_entry(stage: MainlineStage) -> None:
    """They would fill the journal for everybody."""
    crowd = [stage.spawn() for _ in range(24)]
    stage.mainline.observe(roster(crowd))
    for number, vcpu in enumerate(crowd):
        write(stage.mainline, vcpu, Knob.RESCHEDULING_LATENCY, Knob.AFFINITY)
        turn(vcpu, (os.SCHED_FIFO, os.SCHED_IDLE)[number % 2])
    stage.mainline.observe(roster(crowd))
    for vcpu in crowd:
        stage.end(vcpu)
    for _ in range(3):
        stage.mainline.observe(roster([]))
    assert still_held(stage) == []


def test_after_the_daemon_verify_says_who_is_waited_for_and_restore_puts_back_then(tmp_path: Path) -> None:
    stage = MainlineStage(tmp_path, dry_run=False)
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    look(stage, vcpu, 1)
    write(stage.mainline, vcpu, Knob.RESCHEDULING_LATENCY)
    turn(vcpu, os.SCHED_FIFO)
    stage.mainline.close()
    stage.journal.close()
    assert [one.what for one in verify(tmp_path)][0] == "held until it is fair again"
    assert len(recover(tmp_path)[0].waiting) == 1
    turn(vcpu, os.SCHED_OTHER)
    assert recover(tmp_path)[0].put_back == 1
    assert stage.held_by_kernel(vcpu) == before
    stage.end(vcpu)


def test_the_next_daemon_does_not_take_a_slice_that_is_still_ours_for_the_threads_own(
    stage: MainlineStage,
) -> None:
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    look(stage, vcpu, 1)
    write(stage.mainline, vcpu, Knob.RESCHEDULING_LATENCY)
    turn(vcpu, os.SCHED_FIFO)
    stage.mainline.close()
    assert isinstance(stage.journal, Journal)
    put_all_back(stage.journal)
    turn(vcpu, os.SCHED_OTHER)
    stage.mainline = Mainline(stage.journal, probed(), HostSettings(own_groups=True))
    shown = stage.mainline.observe(roster([vcpu])).knobs[vcpu].rescheduling_latency_ns
    assert (shown, still_held(stage)) == (before.rescheduling_latency_ns, [])


class Stubborn(LinuxKernel):
    """Takes nothing back as long as it does not want to."""

    def __init__(self) -> None:
        self.refuses = frozenset(TABLE)

    def write(self, ref: KnobRef, value: NativeValue) -> None:
        if ref.kind in self.refuses:
            raise OSError(22, "Invalid argument")
        super().write(ref, value)


@pytest.mark.parametrize("way", ["leaves the roster", "turns idle", "another policy begins"])
def test_what_cannot_be_put_back_is_tried_again_until_it_is(stage: MainlineStage, way: str) -> None:
    kernel = Stubborn()
    stage.mainline = host = Mainline(stage.journal, probed(), HostSettings(own_groups=True), kernel=kernel)
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    look(stage, vcpu, 1)
    write(host, vcpu, *THREAD_KNOBS)
    held = set(still_held(stage))
    if way == "another policy begins":
        assert len(host.restore().failed) >= len(Knob)
    if way == "turns idle":
        turn(vcpu, os.SCHED_IDLE)
    entries = roster([] if way == "leaves the roster" else [vcpu])
    for _ in range(RETRY_PERIODS):
        assert vcpu not in host.observe(entries).knobs
    # A group of ours is emptied and removed without the knob's help.
    assert held - set(still_held(stage)) <= {CGROUP, *WEIGHTS}
    assert {SLICE, AFFINITY} <= set(still_held(stage))
    kernel.refuses = frozenset()
    host.observe(entries)
    assert (stage.held_by_kernel(vcpu), still_held(stage), stage.own_groups()) == (before, [], [])


WEIGHTS = {WEIGHT_V1, WEIGHT_V2}


def test_threads_born_of_a_pinned_thread_may_go_where_it_might(either: MainlineStage) -> None:
    with threads() as family:
        crew = [family.main]
        either.mainline.observe(roster(crew))
        write(either.mainline, family.main, Knob.AFFINITY, Knob.RESCHEDULING_LATENCY)
        crew += [family.start() for _ in range(4)]
        assert {affinity.get(born.tid) for born in crew} == {(0,)}
        for _ in range(len(crew)):
            found = either.mainline.observe(roster(crew))
        allowed = {one.allowed for one in found.workloads[0].vcpus}
        assert allowed == {BOTH}
        assert {affinity.get(born.tid) for born in crew[1:]} == {(0, 1)}
        shown = {found.knobs[born] for born in crew[1:]}
        assert {one.affinity for one in shown} == {BOTH}
        assert {one.rescheduling_latency_ns for one in shown} == {schedattr.default_slice_ns()}
