"""The wake-edge monitor that follows wake-ups at times and leaves it at others, on this kernel."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import pytest

from dasec.bpf.extent import Extent
from dasec.bpf.libbpf import BpfObject, BpfUnavailable
from dasec.bpf.wake_edges import BpfEdges
from dasec.model import Level

from .monitors import Monitors
from .planted import CALLED, RESTLESS, SPINNER, Actor, planter, run, target

pytestmark = pytest.mark.host


def test_what_is_done_while_nobody_is_watched_is_not_counted_and_what_comes_after_it_is(
    monitor: BpfEdges, actors: list[Actor]
) -> None:
    sleeper = target(actors)
    planters = [planter((sleeper, count)) for count in (4, 6, 5)]
    monitor.follow({actor.id: 0 for actor in (sleeper, *planters)})
    run(actors, planters[0])
    sleeper.wait_until_asleep()
    for _ in range(2):
        monitor.watch(False)
    run(actors, planters[1])
    sleeper.wait_until_asleep()
    paused = monitor.read().threads[sleeper.id]
    began_ns = time.monotonic_ns()
    for _ in range(2):
        monitor.watch(True)
    run(actors, planters[2])
    sleeper.wait_until_asleep()
    after = monitor.read()
    lasted_ns = time.monotonic_ns() - began_ns
    then = after.threads[sleeper.id]
    assert (paused.sibling, then.sibling) == (4, 9)
    assert {waker for waker, _ in after.edges} == {planters[0].id, planters[2].id}
    if monitor.level is Level.FULL:
        assert 0 < then.run_ns - paused.run_ns < lasted_ns
        assert then.sleep_ns - paused.sleep_ns < lasted_ns
        assert then.bursts - paused.bursts == 5
        assert after.missed == 0


def test_a_burst_counts_for_as_long_as_it_was_watched(monitors: Monitors, actors: list[Actor]) -> None:
    monitor = monitors.open(Level.FULL, slots=4, edges=4)
    core = max(os.sched_getaffinity(0))
    pair = [Actor(SPINNER, core=core) for _ in range(2)]  # so that they get and lose the core
    actors.extend(pair)

    def spent_ns() -> int:
        return sum(activity.run_ns + activity.ready_ns for activity in monitor.read().threads.values())

    beginning_ns = time.monotonic_ns()
    monitor.follow({actor.id: 0 for actor in pair})
    time.sleep(0.3)
    at_first_ns = spent_ns()
    monitor.watch(False)
    ceased_ns = time.monotonic_ns()
    watched_ns = spent_ns()
    time.sleep(0.3)
    unwatched_ns = spent_ns() - watched_ns
    resuming_ns = time.monotonic_ns()
    monitor.watch(True)
    resumed_ns = time.monotonic_ns()
    time.sleep(0.3)
    asked_ns = time.monotonic_ns()
    again_ns = spent_ns() - watched_ns
    ended_ns = time.monotonic_ns()
    monitor.close()
    assert 0.3e9 < at_first_ns <= watched_ns <= 2 * (ceased_ns - beginning_ns)
    assert unwatched_ns == 0
    assert asked_ns - resumed_ns < again_ns <= 2 * (ended_ns - resuming_ns)


def test_what_continued_before_watching_ceased_continues_when_it_begins(
    monitors: Monitors, actors: list[Actor]
) -> None:
    monitor = monitors.open(Level.FULL, slots=4, edges=4)
    core = max(os.sched_getaffinity(0))
    beside, woken = Actor(SPINNER, core=core), Actor(CALLED, core=core)
    actors.extend((beside, woken))
    woken.wait_until_asleep()
    monitor.follow({actor.id: 0 for actor in (beside, woken)})
    woken.start()
    time.sleep(0.2)
    before_ns = monitor.read().threads[woken.id].chain_ns
    monitor.watch(False)
    time.sleep(0.1)
    monitor.watch(True)
    time.sleep(0.3)
    after_ns = monitor.read().threads[woken.id].chain_ns
    monitor.close()
    assert before_ns > 0.05e9
    assert after_ns - before_ns > 0.1e9


def test_whoever_is_followed_first_while_nobody_is_watched_is_not_counted_either(
    monitors: Monitors, actors: list[Actor]
) -> None:
    monitor = monitors.open(Level.FULL, slots=4, edges=4)
    monitor.watch(False)
    spinner = Actor(SPINNER)
    actors.append(spinner)
    monitor.follow({spinner.id: 0})
    first = monitor.read().threads[spinner.id]
    time.sleep(0.1)
    assert monitor.read().threads[spinner.id] == first
    monitor.close()


def test_threads_that_sleep_and_wake_meanwhile_are_not_missed_when_watching_begins(
    monitors: Monitors, level: Level, actors: list[Actor]
) -> None:
    monitor = monitors.open(level, slots=8, edges=8)
    restless = [Actor(RESTLESS) for _ in range(3)]
    actors.extend(restless)
    monitor.follow({actor.id: 0 for actor in restless})
    missed, totals = [], []
    for _ in range(20):
        monitor.watch(False)
        time.sleep(0.01)
        before = monitor.read()
        monitor.watch(True)
        missed.append(monitor.read().missed - before.missed)
        time.sleep(0.03)
        totals.append(sum([sum(activity[:3]) for activity in monitor.read().threads.values()]))
    # A few of tens of thousands are missed anyway (docs/measurements.md).
    assert statistics.median(missed) == 0
    assert totals == sorted(set(totals))
    monitor.close()


def test_a_monitor_that_may_not_watch_again_counts_nothing_and_can_be_asked_later(
    monitor: BpfEdges, actors: list[Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = target(actors)
    planters = [planter((sleeper, count)) for count in (6, 5)]
    monitor.follow({actor.id: 0 for actor in (sleeper, *planters)})
    monitor.watch(False)
    with monkeypatch.context() as patch:
        patch.setattr(BpfObject, "attach", refuse_the_last())
        with pytest.raises(BpfUnavailable, match="no more"):
            monitor.watch(True)
    assert not monitor.watching
    run(actors, planters[0])
    assert monitor.read().threads[sleeper.id].sibling == 0
    monitor.watch(True)
    run(actors, planters[1])
    assert monitor.read().threads[sleeper.id].sibling == 5


def refuse_the_last() -> Callable[[BpfObject, str], None]:
    """How a kernel attaches that has no room for the last program of a level."""
    attach = BpfObject.attach

    def attached(self: BpfObject, name: str) -> None:
        if name.startswith("waking"):
            raise BpfUnavailable("no more")
        attach(self, name)

    return attached


def test_a_monitor_that_is_closed_while_nobody_is_watched_leaves_nothing_in_the_kernel(level: Level) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    monitor = BpfEdges(Extent(level, slots=4, edges=4))
    monitor.watch(False)
    monitor.close()
    assert sorted(os.listdir("/proc/self/fd")) == before
