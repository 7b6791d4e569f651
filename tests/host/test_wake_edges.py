"""Planted wake-ups are counted exactly, by class and by pair, on this kernel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from dasec.bpf.edges import NOTHING, Activity
from dasec.bpf.extent import PROGRAMS, Extent
from dasec.bpf.wake_edges import BpfEdges, open_edges
from dasec.model import Level, VcpuId

from .monitors import Monitors
from .planted import NAPPER, SPINNER, Actor, planter, run, target
from .schedtrace import Recorder, evaluate

pytestmark = pytest.mark.host

Cast = Callable[..., Actor]
TIMES = 40
FEW = 5
"""Of the kernel's own threads, which a thread may wake on its way."""


def wakeups(activity: Activity) -> tuple[int, int, int]:
    return activity.sibling, activity.external, activity.timer


def test_wake_ups_by_a_sibling_are_edges_and_by_anybody_else_external(
    monitor: BpfEdges, actors: list[Actor]
) -> None:
    one, other = target(actors), target(actors)
    sibling = planter((one, TIMES), (other, 3))
    stranger = planter((one, 7))
    neighbour = planter((other, 5))
    monitor.follow({one.id: 0, other.id: 0, sibling.id: 0, neighbour.id: 1})
    for actor in (sibling, stranger, neighbour):
        run(actors, actor)
    one.wait_until_asleep()
    other.wait_until_asleep()
    reading = monitor.read()
    assert wakeups(reading.threads[one.id]) == (TIMES, 7, 0)
    assert wakeups(reading.threads[other.id]) == (3, 5, 0)
    edges = {pair: edge.wakeups for pair, edge in reading.edges.items()}
    assert edges == {(sibling.id, one.id): TIMES, (sibling.id, other.id): 3}
    assert reading.lost == 0


def test_wake_ups_of_strangers_and_neighbours_are_outward_and_whoever_computes_makes_none(
    monitor: BpfEdges, actors: list[Actor]
) -> None:
    sibling, stranger, neighbour = target(actors), target(actors), target(actors)
    waker = planter((sibling, 5), (stranger, TIMES), (neighbour, 3))
    spinner = Actor(SPINNER, core=max(os.sched_getaffinity(0)))
    actors.append(spinner)
    monitor.follow({sibling.id: 0, waker.id: 0, spinner.id: 0, neighbour.id: 1})
    recorder = Recorder()
    run(actors, waker)
    for actor in (sibling, stranger, neighbour):
        actor.wait_until_asleep()
    reading = monitor.read()
    truth = evaluate(recorder.events(), {sibling.pid, waker.pid})
    recorder.close()
    assert reading.threads[waker.id].outward == truth.outward[waker.pid]
    # It also says when it is done, which wakes us if we sleep.
    assert TIMES + 3 <= reading.threads[waker.id].outward <= TIMES + 3 + 1 + FEW
    assert reading.threads[spinner.id].outward <= FEW
    assert reading.threads[neighbour.id].outward == 0
    assert reading.threads[sibling.id].external == 0


def test_timers_are_no_edges_even_when_they_interrupt_a_sibling(
    monitor: BpfEdges, actors: list[Actor]
) -> None:
    core = max(os.sched_getaffinity(0))
    spinner = Actor(SPINNER, core=core)
    actors.append(spinner)
    napper = Actor(NAPPER, str(TIMES), core=core)
    recorder = Recorder()
    monitor.follow({spinner.id: 0, napper.id: 0})
    run(actors, napper)
    napper.wait_until_asleep()
    reading = monitor.read()
    truth = evaluate(recorder.events(), {spinner.pid, napper.pid})
    recorder.close()
    # On a busy machine a nap may be over before it has begun; then there is no wake-up.
    assert TIMES / 2 < truth.timer[napper.pid] <= TIMES
    # We wake it to begin; on a guest's disk whatever it waits for does once more.
    assert 1 <= truth.external[napper.pid] <= 1 + FEW
    assert wakeups(reading.threads[napper.id]) == (0, truth.external[napper.pid], truth.timer[napper.pid])
    assert reading.edges == {}


def test_a_sleeper_is_charged_nothing_for_what_its_core_does_meanwhile(
    monitors: Monitors, actors: list[Actor]
) -> None:
    monitor = monitors.open(Level.FULL, slots=16, edges=16)
    try:
        core = max(os.sched_getaffinity(0))
        sleeper, napper = target(actors, core), Actor(NAPPER, str(TIMES), core=core)
        monitor.follow({sleeper.id: 0})
        recorder = Recorder()
        for actor in (planter((sleeper, 1), core=core), napper, planter((sleeper, 1), core=core)):
            run(actors, actor)
            sleeper.wait_until_asleep()
        counted = monitor.read()
        truth = evaluate(recorder.events(), {sleeper.pid})
        recorder.close()
    finally:
        monitor.close()
    activity = counted.threads[sleeper.id]
    assert (activity.bursts, activity.dispatches - activity.preemptions) == (2, 2)
    assert activity.preemptions == truth.preemptions[sleeper.pid]
    assert activity.sleep_ns >= TIMES * 2_000_000
    assert counted.missed == truth.missed


def test_a_sleep_whose_end_was_not_seen_is_sleep_and_blames_nobody(
    actors: list[Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROGRAMS, Level.FULL, ("switching",))
    monitor = BpfEdges(Extent(Level.FULL, slots=16, edges=16))
    try:
        sleeper = target(actors)
        monitor.follow({sleeper.id: 0})
        recorder = Recorder()
        run(actors, planter((sleeper, TIMES)))
        sleeper.wait_until_asleep()
        reading = monitor.read()
        truth = evaluate(recorder.events(), {sleeper.pid})
        recorder.close()
    finally:
        monitor.close()
    activity = reading.threads[sleeper.id]
    assert reading.missed == activity.bursts == TIMES
    assert activity.sleep_ns > truth.sleep_ns[sleeper.pid] / 2 > 0
    assert (activity.blame_ns, reading.edges) == (0, {})
    assert activity.chain_ns == 0


def test_who_has_done_nothing_since_the_last_reading_has_the_very_same_activity(
    monitor: BpfEdges, actors: list[Actor]
) -> None:
    one, other = target(actors), target(actors)
    waker = planter((one, 3))
    monitor.follow({one.id: 0, other.id: 0})
    before = monitor.read()
    run(actors, waker)
    one.wait_until_asleep()
    after = monitor.read()
    assert after.threads[other.id] is before.threads[other.id]
    assert wakeups(after.threads[one.id]) == (0, 3, 0)
    assert wakeups(before.threads[one.id]) == (0, 0, 0)


def test_who_is_followed_no_longer_is_not_counted_and_its_edges_are_gone(
    monitor: BpfEdges, actors: list[Actor]
) -> None:
    sleeper = target(actors)
    first, second = planter((sleeper, 4)), planter((sleeper, 6))
    monitor.follow({sleeper.id: 0, first.id: 0})
    run(actors, first)
    monitor.follow({sleeper.id: 0})
    assert monitor.read().edges == {}
    run(actors, second)
    sleeper.wait_until_asleep()
    reading = monitor.read()
    assert set(reading.threads) == {sleeper.id}
    assert wakeups(reading.threads[sleeper.id]) == (4, 6, 0)


def test_a_thread_that_moves_to_another_workload_starts_anew(monitor: BpfEdges, actors: list[Actor]) -> None:
    sleeper = target(actors)
    waker = planter((sleeper, 5))
    monitor.follow({sleeper.id: 0, waker.id: 0})
    monitor.follow({sleeper.id: 1, waker.id: 0})
    run(actors, waker)
    sleeper.wait_until_asleep()
    reading = monitor.read()
    assert wakeups(reading.threads[sleeper.id]) == (0, 5, 0)
    assert reading.edges == {}


def test_a_number_with_another_start_time_is_not_followed(monitor: BpfEdges, actors: list[Actor]) -> None:
    sleeper = target(actors)
    former = VcpuId(sleeper.pid, sleeper.pid, sleeper.id.start_ticks - 1)
    monitor.follow({former: 0})
    assert monitor.read() == NOTHING


def test_a_slot_given_again_holds_nothing_of_its_former_thread(
    monitor: BpfEdges, actors: list[Actor]
) -> None:
    for _ in range(3):
        sleeper = target(actors)
        waker = planter((sleeper, 5))
        monitor.follow({sleeper.id: 0, waker.id: 0})
        run(actors, waker)
        sleeper.wait_until_asleep()
        reading = monitor.read()
        assert wakeups(reading.threads[sleeper.id]) == (5, 0, 0)
        assert {pair: edge.wakeups for pair, edge in reading.edges.items()} == {(waker.id, sleeper.id): 5}
        for actor in (sleeper, waker):
            actors.remove(actor)
            actor.end()
        monitor.follow({})
        for _ in range(2):
            reading = monitor.read()
            assert (reading.threads, reading.edges) == ({}, {})


def test_a_workload_that_comes_later_has_its_part_of_the_slots(monitors: Monitors, level: Level) -> None:
    monitor = monitors.open(level, slots=8, edges=16)
    leave = threading.Event()
    threads = [threading.Thread(target=leave.wait) for _ in range(20)]
    try:
        for thread in threads:
            thread.start()
        ids = [vcpu(thread.native_id or 0) for thread in threads]
        first, second = dict.fromkeys(ids[:14], 0), dict.fromkeys(ids[14:], 1)
        assert monitor.follow(first) == {0: 6}
        assert monitor.follow({**first, **second}) == {0: 10, 1: 2}
        for _ in range(3):  # a slot that falls free rests for two readings
            followed = monitor.read().threads
        assert sorted((first | second)[who] for who in followed) == [0] * 4 + [1] * 4
        assert monitor.follow(first) == {0: 6}
        for _ in range(3):
            followed = monitor.read().threads
        assert len(followed) == 8
        assert monitor.follow({}) == {}
    finally:
        leave.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        monitor.close()


def test_threads_that_come_and_go_by_the_hundred_are_followed_up_to_the_room_there_is(
    monitors: Monitors, level: Level
) -> None:
    monitor = monitors.open(level, slots=8, edges=16)
    leave = threading.Event()
    try:
        for _ in range(10):
            leave.clear()
            threads = [threading.Thread(target=leave.wait) for _ in range(20)]
            for thread in threads:
                thread.start()
            ids = [vcpu(thread.native_id or 0) for thread in threads]
            monitor.follow(dict.fromkeys(ids, 0))
            leave.set()
            for thread in threads:
                thread.join()
            assert len(monitor.read().threads) <= 8
        monitor.follow({})
        monitor.read()
        monitor.read()
        monitor.follow({vcpu(threading.get_native_id()): 0})
        assert len(monitor.read().threads) == 1
    finally:
        monitor.close()


def vcpu(tid: int) -> VcpuId:
    with open(f"/proc/self/task/{tid}/stat", encoding="ascii") as file:
        return VcpuId(os.getpid(), tid, int(file.read().rpartition(") ")[2].split()[19]))


def test_edges_beyond_the_room_are_counted_as_lost(
    monitors: Monitors, level: Level, actors: list[Actor]
) -> None:
    near, far = 6, 2
    monitor = monitors.open(level, slots=16, edges=far)
    try:
        sleeper = target(actors)
        wakers = [planter((sleeper, 2)) for _ in range(near + far + 2)]
        monitor.follow({actor.id: 0 for actor in (sleeper, *wakers)})
        for waker in wakers:
            run(actors, waker)
        reading = monitor.read()
    finally:
        monitor.close()
    assert len(reading.edges) == near + far
    assert {edge.wakeups for edge in reading.edges.values()} == {2}
    assert reading.lost == 4
    assert reading.threads[sleeper.id].sibling == 2 * len(wakers)


def test_closing_leaves_nothing_in_the_kernel(level: Level) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    monitor = BpfEdges(Extent(level, slots=64, edges=64))
    monitor.follow({vcpu(threading.get_native_id()): 0})
    monitor.close()
    monitor.close()
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_what_came_between_two_readings_is_their_difference(monitor: BpfEdges, actors: list[Actor]) -> None:
    sleeper = target(actors)
    first, second = planter((sleeper, 4)), planter((sleeper, 6))
    monitor.follow({actor.id: 0 for actor in (sleeper, first, second)})
    run(actors, first)
    sleeper.wait_until_asleep()
    before = monitor.read()
    run(actors, second)
    sleeper.wait_until_asleep()
    after = monitor.read()
    assert after.threads[sleeper.id].sibling - before.threads[sleeper.id].sibling == 6
    new = {pair: edge.wakeups for pair, edge in after.edges.items() if before.edges.get(pair) != edge}
    assert new == {(second.id, sleeper.id): 6}


def test_nobody_asked_is_nothing_counted() -> None:
    nothing = open_edges(Extent(Level.NONE))
    nothing.follow({VcpuId(1, 1, 1): 0})
    assert (nothing.level, nothing.read()) == (Level.NONE, NOTHING)
