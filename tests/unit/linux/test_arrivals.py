"""Who is managed where there are too many, and when a newcomer is adopted."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dasec.bpf.thread_counters import SEATS
from dasec.hosts.host import MOST_THREADS, ROOM
from dasec.hosts.threads.arrivals import AT_A_LOOK, EARNED_A_SECOND, SPARE, Arrivals
from dasec.hosts.threads.places import Attended, Numbers, attended, change_of
from dasec.roster import Member, RosterEntry
from dasec.safety.journal.journal import MAX_HELD

LOOK_NS = 80_000_000
KNOBS = 4
"""Weight, slice, mask and the group that it was moved to."""


def threads(first: int, count: int) -> tuple[Numbers, ...]:
    return tuple((first, first + number) for number in range(count))


def entry(name: str, first: int, count: int) -> RosterEntry:
    return RosterEntry(name, None, threads(first, count))


def sizes_of(*entries: RosterEntry, room: int = ROOM) -> list[int]:
    return [len(one.members) for one in attended(entries, (), room=room)]


def test_whoever_has_more_threads_than_its_bound_has_that_many_managed() -> None:
    (row,) = attended([entry("a", 1, 50)], (), most=20)
    assert (row.workload, tuple(row.members), row.left_out) == ("a", threads(1, 20), 30)


def test_a_workload_that_comes_later_gets_its_part_from_those_that_have_more() -> None:
    assert sizes_of(entry("a", 1, 4000), room=3000) == [3000]
    assert sizes_of(entry("a", 1, 4000), entry("b", 90_000, 10), room=3000) == [2990, 10]
    assert sizes_of(entry("a", 1, 4000), entry("b", 90_000, 4000), room=3000) == [1500, 1500]


def test_who_is_managed_stays_so_when_others_come_before_it() -> None:
    (row,) = attended([entry("a", 1, 50)], threads(1, 50)[30:], most=20)
    assert set(row.members) == set(threads(1, 50)[30:])


def test_a_thread_that_two_workloads_name_belongs_to_the_first_and_takes_no_place_of_the_second() -> None:
    rows = attended([entry("a", 1, 5), RosterEntry("b", None, threads(1, 9))], (), most=4)
    assert [(tuple(row.members), row.left_out) for row in rows] == [
        (threads(1, 5)[:4], 1),
        (threads(1, 9)[5:], 0),
    ]


@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 30), st.integers(0, 100))
def test_there_are_never_more_than_there_is_room_for(sizes: list[int], most: int, room: int) -> None:
    entries = [entry(str(at), 1000 * at, size) for at, size in enumerate(sizes)]
    rows = attended(entries, (), most, room)
    assert sum(len(row.members) for row in rows) <= room
    assert all(len(row.members) <= most for row in rows)
    assert [len(row.members) + row.left_out for row in rows] == sizes


def test_everybody_has_a_seat_in_the_kernels_table() -> None:
    assert ROOM <= SEATS


def test_the_journal_has_room_for_all_knobs_of_all_threads_that_can_be_managed() -> None:
    assert KNOBS * ROOM <= MAX_HELD


def test_that_threads_are_left_alone_is_said_when_it_begins_and_when_it_ends_with_the_way_out() -> None:
    (many,), (few,) = attended([entry("a", 1, MOST_THREADS + 3)], ()), attended([entry("a", 1, 3)], ())
    assert change_of(many, 0) == (
        f"workload a: 3 of {MOST_THREADS + 3} threads are left alone: "
        f"max_threads_per_workload = {MOST_THREADS} in [host]"
    )
    assert change_of(many, 2) == change_of(few, 0) == ""
    assert change_of(few, 3) == "workload a: no thread is left alone for want of room any more"


def test_where_the_whole_host_has_no_room_no_bound_of_the_workload_is_named() -> None:
    rows = attended([entry(str(at), 10_000 * at, MOST_THREADS) for at in range(5)], ())
    assert {change_of(row, 0).partition(": ")[2] for row in rows} == {
        f"{row.left_out} of {MOST_THREADS} threads are left alone: this host has room for {ROOM} threads"
        " of all workloads: manage fewer"
        for row in rows
    }


class World:
    """Workloads whose threads come and go, looked at every 80 ms."""

    def __init__(self) -> None:
        self.arrivals = Arrivals()
        self.managed: set[Numbers] = set()
        self.clock_ns = LOOK_NS

    def look(self, **workloads: Sequence[Numbers]) -> list[Numbers]:
        self.clock_ns += LOOK_NS
        self.managed &= {numbers for own in workloads.values() for numbers in own}
        rows = [
            Attended(name, {one: Member(one, None, None) for one in own}, 0)
            for name, own in workloads.items()
        ]
        admitted = self.arrivals.admit(rows, self.managed.__contains__, self.clock_ns)
        self.managed.update(admitted)
        return admitted


def test_a_workload_that_starts_has_all_its_threads_adopted_at_once() -> None:
    world = World()
    assert len(world.look(a=threads(1, 300), b=threads(1000, 100))) == 400
    assert len(world.look(a=threads(1, 350), b=threads(1000, 100))) == 50
    assert not world.arrivals.waiting


def test_thousands_at_once_are_spread_over_looks_and_keep_a_small_workload_from_nothing() -> None:
    world = World()
    own = {"big": threads(1, MOST_THREADS), "small": threads(90_000, 8)}
    assert set(world.look(**own)) >= set(own["small"])
    looks = 1
    while world.arrivals.waiting:
        assert 0 < len(world.look(**own)) <= AT_A_LOOK
        looks += 1
    assert (len(world.managed), looks) == (MOST_THREADS + 8, -(-(MOST_THREADS + 8) // AT_A_LOOK))


def churning(
    world: World, looks: int, lives_looks: int = 4, count: int = 600, **others: Sequence[Numbers]
) -> int:
    """`count` threads that live for so many looks each; how many of them were adopted."""
    adopted, born = 0, 1_000_000
    alive = [threads(born + at * count, count // lives_looks) for at in range(lives_looks)]
    for look in range(looks):
        alive = [*alive[1:], threads(born + (lives_looks + look) * count, count // lives_looks)]
        churn = tuple(one for cohort in alive for one in cohort)
        adopted += sum(one[0] >= born for one in world.look(churn=churn, **others))
    return adopted


def test_threads_that_live_for_a_third_of_a_second_cost_so_many_adoptions_a_second_and_no_more() -> None:
    adopted = churning(World(), looks=1250)
    assert adopted <= 600 + SPARE + 100 * EARNED_A_SECOND, "100 s, in which 187 500 were born"


def test_beside_them_a_workload_that_starts_is_adopted_at_once_and_one_that_starts_again_soon() -> None:
    world = World()
    churning(world, 100)
    first, second, third = threads(1, 40), threads(101, 40), threads(201, 40)
    for own in (first, second):
        churning(world, 1, web=own)
        assert world.managed >= set(own)
    churning(world, 60, web=third)
    assert world.managed >= set(third)


def test_a_thread_that_lives_is_adopted_however_many_come_and_go_in_its_process() -> None:
    world = World()
    churning(world, 100)
    patient = [(5, 5)]
    for look in range(200):
        newborn = threads(5_000_000 + look * 1000, 600)
        world.look(churn=[*newborn[:300], *patient, *newborn[300:]])
        if (5, 5) in world.managed:
            return
    raise AssertionError("it never was")
