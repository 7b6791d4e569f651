"""What a workload with too many threads, or with too many that come and go, gets from the real host."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from dasec.flow import LINES
from dasec.hosts.host import HostSettings
from dasec.hosts.mainline import Mainline
from dasec.hosts.threads.arrivals import AT_A_LOOK, EARNED_A_SECOND, SPARE
from dasec.roster import RosterEntry
from dasec.safety.journal.dry_run import NoJournal
from tests.contract.stage import NOTHING

pytestmark = pytest.mark.host


@contextmanager
def threads(count: int, first: Callable[[], object] = lambda: None) -> Iterator[list[int]]:
    """The ids of so many threads of this process that have done that `first` and sleep."""
    leave, ready = threading.Event(), threading.Barrier(count + 1)

    def live() -> None:
        first()
        ready.wait()
        leave.wait()

    living = [threading.Thread(target=live) for _ in range(count)]
    for thread in living:
        thread.start()
    ready.wait()
    try:
        yield sorted(thread.native_id or 0 for thread in living)
    finally:
        leave.set()
        for thread in living:
            thread.join()


@pytest.fixture
def build() -> Iterator[Callable[[int], Mainline]]:
    made: list[Mainline] = []

    def one(most: int) -> Mainline:
        made.append(Mainline(NoJournal(), NOTHING, HostSettings(dry_run=True, most=most)))
        return made[-1]

    yield one
    for host in made:
        host.close()


def entry(name: str, tids: Sequence[int]) -> RosterEntry:
    return RosterEntry(name, None, tuple((os.getpid(), tid) for tid in tids))


def managed(host: Mainline, *entries: RosterEntry) -> list[list[int]]:
    return [[vcpu.id.tid for vcpu in one.vcpus] for one in host.observe(entries).workloads]


def test_threads_beyond_the_bound_of_their_workload_are_left_alone_which_is_said_once(
    build: Callable[[int], Mainline],
) -> None:
    host = build(3)
    with threads(9) as tids:
        many, few = entry("many", tids[:7]), entry("few", tids[7:])
        for _ in range(20):
            assert managed(host, many, few) == [tids[:3], tids[7:]]
        assert host.notices() == (
            "workload many: 4 of 7 threads are left alone: max_threads_per_workload = 3 in [host]",
        )
        assert managed(host, entry("many", tids[2:6]), few) == [tids[2:5], tids[7:]]
        assert managed(host, entry("many", tids[4:6]), few) == [tids[4:6], tids[7:]]
        assert host.notices() == ("workload many: no thread is left alone for want of room any more",)


def test_more_threads_than_one_look_can_adopt_are_adopted_over_several(
    build: Callable[[int], Mainline],
) -> None:
    host = build(4096)
    with threads(AT_A_LOOK + 40) as tids:
        many, few = entry("many", tids[40:]), entry("few", tids[:40])
        assert [len(own) for own in managed(host, many, few)] == [AT_A_LOOK - 40, 40]
        assert managed(host, many, few) == [tids[40:], tids[:40]]


def test_threads_that_take_the_place_of_others_again_and_again_are_adopted_a_few_at_a_time(
    build: Callable[[int], Mainline],
) -> None:
    host, seen, began_s = build(4096), set[int](), time.monotonic()
    for _ in range(30):
        with threads(50) as tids:
            seen.update(*managed(host, entry("churn", tids)))
    lasted_s = time.monotonic() - began_s
    assert 50 + SPARE <= len(seen) <= 50 + SPARE + lasted_s * EARNED_A_SECOND


def idle() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def test_of_threads_that_turn_idle_and_go_only_the_first_have_a_line_each(
    build: Callable[[int], Mainline],
) -> None:
    host = build(4096)
    lines: list[str] = []
    for _ in range(5):
        with threads(40, idle) as tids:
            assert managed(host, entry("a", tids)) == [[]]
            lines += host.notices()
    assert len(lines) == LINES
    assert all("is left alone: idle class (SCHED_IDLE)" in line for line in lines)
