"""The hot path over plain files: who is read, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dasec.hosts.mainline import sample as module
from dasec.hosts.mainline.sample import Sampler
from dasec.hosts.threads.looks import LookedAt
from dasec.hosts.threads.thread import ManagedThread
from dasec.linux.procfs import KeptThread
from dasec.model import Core, Counters, Knobs, ThreadState, Vcpu, VcpuId

from .tree import Tree, stat_line

MS = 1_000_000
PERIOD = 80 * MS


class Machine:
    """Some threads of process 10 on plain files, and a sampler over them; time is ours."""

    def __init__(self, tree: Tree, count: int) -> None:
        self._tree = tree
        self._clock_ns = 0
        self.counters: dict[VcpuId, Counters] = {}
        threads = []
        for tid in range(10, 10 + count):
            self.set(tid)
            who = VcpuId(10, tid, 1000)
            vcpu = Vcpu(who, "vcpu", frozenset())
            kept = KeptThread(10, tid, tree.proc)
            threads.append(ManagedThread(vcpu, kept, 0, Core(0), Knobs(None, None, None), "/", None))
            self.counters[who] = Counters(0, 0, 0, ThreadState.UNKNOWN, Core(0))
        self.sampler = Sampler(threads, self.counters)

    def set(
        self, tid: int, state: str = "S", schedstat: str = "0 0 0", core: int = 0, policy: int = 0
    ) -> None:
        self._tree.thread(10, tid, stat_line(tid, state=state, core=core, policy=policy), schedstat)

    def look(self, after_ns: int = PERIOD) -> LookedAt:
        self._clock_ns += after_ns
        return self.sampler.take(self._clock_ns)

    def of(self, tid: int) -> Counters:
        return self.counters[VcpuId(10, tid, 1000)]


@pytest.fixture
def machine(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Machine]:
    """We ourselves run on core 7."""
    monkeypatch.setattr(module, "_sched_getcpu", lambda: 7)
    return lambda count: Machine(tree, count)


def test_the_counters_are_the_kernels(machine: Callable[[int], Machine]) -> None:
    two = machine(2)
    two.set(10, schedstat="40000000 3000 12", core=1)
    assert two.look().suspects[0].id.tid == 10
    assert two.of(10) == Counters(40_000_000, 3000, 12, ThreadState.IDLE, Core(1))


def test_one_runnable_thread_on_a_core_runs_and_two_are_ready(machine: Callable[[int], Machine]) -> None:
    three = machine(3)
    for tid, core in ((10, 1), (11, 2), (12, 2)):
        three.set(tid, "R", "50000000 0 1", core)
    three.look()
    states = [three.of(tid).state for tid in (10, 11, 12)]
    assert states == [ThreadState.RUNNING, ThreadState.READY, ThreadState.READY]


def test_a_runnable_thread_on_our_own_core_is_ready(machine: Callable[[int], Machine]) -> None:
    one = machine(1)
    one.set(10, "R", "50000000 0 1", core=7)
    one.look()
    assert one.of(10).state is ThreadState.READY


def test_a_sleeper_is_not_touched(machine: Callable[[int], Machine]) -> None:
    many = machine(64)
    many.look()
    before = {tid: many.of(tid) for tid in range(10, 74)}
    many.look()
    assert all(many.of(tid) is before[tid] for tid in range(10, 74))


def test_a_wait_that_has_not_ended_is_counted(machine: Callable[[int], Machine]) -> None:
    two = machine(2)
    for tid in (10, 11):
        two.set(tid, "R", "50000000 1000 1", core=1)
    two.look()
    two.set(11, "R", "130000000 1000 2", core=1)
    two.look()
    assert two.of(10).ready_ns == 1000 + PERIOD
    assert two.of(11).ready_ns == 1000


def test_what_was_counted_of_a_wait_is_not_counted_again_when_it_ends(
    machine: Callable[[int], Machine],
) -> None:
    two = machine(2)
    for tid in (10, 11):
        two.set(tid, "R", "50000000 0 1", core=1)
    two.look()
    two.look()
    two.set(10, "R", f"51000000 {PERIOD + 5} 2", core=1)
    two.look()
    assert two.of(10).ready_ns == PERIOD + 5


def test_who_was_awake_and_fell_asleep_without_running_is_idle(machine: Callable[[int], Machine]) -> None:
    one = machine(1)
    one.set(10, "R", "50000000 0 1")
    one.look()
    one.set(10, "S", "50000000 0 1")
    one.look()
    assert one.of(10).state is ThreadState.IDLE


def test_a_light_thread_that_goes_quiet_is_looked_at_once_more(machine: Callable[[int], Machine]) -> None:
    many = machine(40)
    many.look()
    many.look()
    many.set(49, "R", "100000 0 1", core=3)
    many.look()
    assert many.of(49).state is ThreadState.IDLE  # a thousandth of the period: taken to be asleep
    many.look()
    assert many.of(49).state is ThreadState.RUNNING


def test_every_sleeper_is_looked_at_in_turn(machine: Callable[[int], Machine]) -> None:
    many = machine(40)
    many.look()
    for tid in range(10, 50):
        many.set(tid, "R", core=tid)
    for _ in range(40 // module.SLEEPERS_READ):
        many.look()
    assert {many.of(tid).state for tid in range(10, 50)} == {ThreadState.RUNNING}


@pytest.mark.parametrize("letter", ["Z", "X"])
def test_a_zombie_is_gone(machine: Callable[[int], Machine], letter: str) -> None:
    one = machine(1)
    one.set(10, letter, "50000000 0 1")
    assert [thread.id.tid for thread in one.look().gone] == [10]


@pytest.mark.parametrize(
    ("policy", "reason"), [(1, "SCHED_FIFO"), (2, "SCHED_RR"), (5, "SCHED_IDLE"), (6, "deadline")]
)
def test_a_thread_that_left_the_fair_class_is_named(
    machine: Callable[[int], Machine], policy: int, reason: str
) -> None:
    one = machine(1)
    one.set(10, "S", "50000000 0 1", policy=policy)
    ((thread, said),) = one.look().turned
    assert thread.id.tid == 10
    assert reason in said


def test_batch_threads_stay(machine: Callable[[int], Machine]) -> None:
    one = machine(1)
    one.set(10, "S", "50000000 0 1", policy=3)
    assert one.look().turned == []
