"""What holds of reservations whatever is asked for, released and asked for again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from dasec.reservations import (
    Ask,
    CpuClass,
    Principle,
    Refused,
    Reservations,
    allocate,
    release,
    writes,
)
from dasec.reservations.grants import WHOLE
from dasec.reservations.order import cpusets
from dasec.reservations.take import CpuPlace, take

NAMES = "abcdefgh"


@st.composite
def machines(draw: st.DrawFn) -> Reservations:
    """No more than 24 CPUs, in sockets and cores of any size, numbered in any order."""
    sockets, cores, threads = draw(st.integers(1, 3)), draw(st.integers(2, 4)), draw(st.integers(1, 2))
    numbers = draw(st.permutations(range(sockets * cores * threads)))
    places = [CpuPlace(s, c) for s in range(sockets) for c in range(cores) for _ in range(threads)]
    return Reservations(dict(zip(numbers, places, strict=True)), apart=draw(st.booleans()))


asks = st.builds(
    Ask,
    st.sampled_from(NAMES),
    st.integers(1, 12).map(lambda steps: steps * 300) | st.integers(1, 6).map(lambda cpus: cpus * WHOLE),
    st.sampled_from([CpuClass.EXCLUSIVE, *CpuClass]),
)
courses = st.lists(asks | asks | st.sampled_from(NAMES), min_size=8, max_size=30)


def states(
    start: Reservations, course: Sequence[Ask | str], principle: Principle
) -> Iterator[tuple[Reservations, Reservations]]:
    """Each step that could be taken: before and after."""
    for step in course:
        if isinstance(step, Ask):
            after = allocate(start, step, principle)
            if isinstance(after, Refused):
                continue
        elif step in start.grants:
            after = release(start, step)
        else:
            continue
        yield start, after
        start = after


@given(machines(), courses, st.sampled_from(Principle))
def test_each_cpu_is_exclusive_or_fractional_or_in_the_pool(
    machine: Reservations, course: Sequence[Ask | str], principle: Principle
) -> None:
    for _, state in states(machine, course, principle):
        groups = [state.exclusive, state.used_parts.keys(), state.pool]
        assert sorted(cpu for group in groups for cpu in group) == sorted(machine.places)
        own = [cpu for grant in state.grants.values() for cpu in grant.exclusive]
        assert len(own) == len(set(own))
        assert all(0 < used <= WHOLE for used in state.used_parts.values())


@given(machines(), courses, st.sampled_from(Principle))
def test_each_gets_what_it_asked_for(
    machine: Reservations, course: Sequence[Ask | str], principle: Principle
) -> None:
    for _, state in states(machine, course, principle):
        for name, (ask, exclusive, parts) in state.grants.items():
            if ask.is_apart:
                assert len(exclusive) * WHOLE + sum(part for _, part in parts) == ask.reserved_millicores
                if principle is Principle.HARD:
                    assert len(state.cpus_of(name)) == ask.visible
        assert state.free_millicores >= 0


@given(machines(), courses, st.sampled_from(Principle))
def test_who_shares_is_never_left_without_a_cpu_of_the_pool(
    machine: Reservations, course: Sequence[Ask | str], principle: Principle
) -> None:
    for _, state in states(machine, course, principle):
        assert state.pool or not state.needs_pool


@given(machines(), courses, asks, st.sampled_from(Principle))
def test_a_release_undoes_an_allocation(
    machine: Reservations, course: Sequence[Ask | str], ask: Ask, principle: Principle
) -> None:
    for _, state in states(machine, course, principle):
        after = allocate(state, ask, principle)
        assert isinstance(after, Refused) or release(after, ask.name) == state


@given(machines(), courses, st.sampled_from(Principle))
def test_after_each_write_everybody_has_a_cpu_and_no_own_cpu_has_two_owners(
    machine: Reservations, course: Sequence[Ask | str], principle: Principle
) -> None:
    for before, after in states(machine, course, principle):
        now = {name: cpus for name, cpus in cpusets(before).items() if not name or name in after.grants}
        for write in writes(before, after):
            now[write.name] = write.cpus
            assert all(now.values())
            for name, cpus in now.items():
                others = [of for other, of in now.items() if other != name]
                kept = after.grants[name].exclusive & cpus if name else frozenset[int]()
                assert not any(kept & of for of in others)
        assert now == cpusets(after)


@given(machines(), st.data())
def test_what_is_taken_is_free_and_as_much_as_was_wanted(machine: Reservations, data: st.DataObject) -> None:
    free = data.draw(st.sets(st.sampled_from(sorted(machine.places))))
    count = data.draw(st.integers(0, len(free)))
    taken = take(free, count, machine.places)
    assert taken <= free
    assert len(taken) == count
