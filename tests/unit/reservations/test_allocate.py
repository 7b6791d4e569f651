"""Both papers' rules on machines small enough to check by hand."""

from __future__ import annotations

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
from dasec.reservations.take import CpuPlace, take

EXCLUSIVE, SHARED, STRICT = CpuClass.EXCLUSIVE, CpuClass.SHARED, CpuClass.WHOLE
RKUBE = {
    cpu: CpuPlace(socket, core)
    for cpu, (_, socket, core) in enumerate(
        (thread, socket, core) for thread in range(2) for socket in range(2) for core in range(6)
    )
}
"""rKube's testbed: two sockets of six cores of two threads (section 3.1)."""


def cores(count: int, *, apart: bool = False) -> Reservations:
    """One socket without SMT, as WYSIWYG's testbed."""
    return Reservations({cpu: CpuPlace(0, cpu) for cpu in range(count)}, apart=apart)


def given(
    state: Reservations, *asks: tuple[str, int, CpuClass], principle: Principle = Principle.HARD
) -> Reservations:
    """The state after asks that are all granted."""
    for ask in asks:
        after = allocate(state, Ask(*ask), principle)
        assert isinstance(after, Reservations), after
        state = after
    return state


def refusal(
    state: Reservations, ask: tuple[str, int, CpuClass], principle: Principle = Principle.HARD
) -> str:
    """Why that one is not granted."""
    after = allocate(state, Ask(*ask), principle)
    assert isinstance(after, Refused)
    return after.why


def test_350_percent_sees_four_cores_of_six_and_has_a_quota() -> None:
    state = given(cores(6), ("stream", 3500, EXCLUSIVE))
    grant = state.grants["stream"]
    assert grant.exclusive == {0, 1, 2}
    assert grant.parts == ((3, 500),)
    assert grant.ask.quota_millicores == 3500
    assert state.pool == {4, 5}


def test_two_of_350_percent_have_one_core_in_common() -> None:
    state = given(cores(8), ("one", 3500, EXCLUSIVE), ("other", 3500, EXCLUSIVE))
    assert state.cpus_of("one") & state.cpus_of("other") == {3}
    assert state.used_parts == {3: 1000}


def test_a_fraction_that_fits_on_no_used_core_gets_a_fresh_one() -> None:
    state = given(cores(6), ("a", 600, EXCLUSIVE), ("b", 600, EXCLUSIVE), ("c", 600, EXCLUSIVE))
    assert [state.grants[name].parts for name in "abc"] == [((0, 600),), ((1, 600),), ((2, 600),)]


def test_a_fraction_goes_to_the_emptiest_used_core() -> None:
    state = given(cores(6), ("a", 700, EXCLUSIVE), ("b", 600, EXCLUSIVE), ("c", 200, EXCLUSIVE))
    assert state.grants["c"].parts == ((1, 200),)


def test_when_the_pool_is_short_as_many_used_cores_serve_as_would_be_seen() -> None:
    state = given(cores(5), ("a", 600, EXCLUSIVE), ("b", 600, EXCLUSIVE), ("w", 1000, EXCLUSIVE))
    more = given(state, ("c", 1400, EXCLUSIVE))
    assert more.grants["c"].exclusive == {3}
    assert more.grants["c"].parts == ((0, 400),)
    why = refusal(state, ("c", 1500, EXCLUSIVE))
    assert why == "c: 0.5 CPUs of it fit on no 1 of the CPUs that are given in parts"
    spread = given(state, ("c", 1500, EXCLUSIVE), principle=Principle.BEST_EFFORT)
    assert spread.grants["c"].parts == ((0, 400), (1, 100))


def test_whole_cores_that_are_not_there_are_refused_by_principle() -> None:
    state = given(cores(3), ("a", 500, EXCLUSIVE))
    assert refusal(state, ("b", 2000, EXCLUSIVE)) == "b: wants 2 CPUs of its own, and the pool can give 1"


def test_who_shares_sees_the_pool_and_the_used_parts() -> None:
    state = given(cores(6), ("one", 2500, EXCLUSIVE), ("batch", 1000, SHARED))
    assert state.cpus_of("batch") == {2, 3, 4, 5}
    assert state.grants["batch"].ask.quota_millicores == 1000


def test_the_last_core_of_the_pool_is_the_home_of_all_others() -> None:
    assert "the pool can give 1" in refusal(cores(2), ("a", 2000, EXCLUSIVE))
    assert given(cores(2, apart=True), ("a", 2000, EXCLUSIVE)).pool == frozenset()
    full = given(cores(2, apart=True), ("a", 1500, EXCLUSIVE))
    assert "last CPU of the pool" in refusal(full, ("batch", 100, SHARED))


def test_what_was_asked_for_once_is_refused_twice() -> None:
    state = given(cores(4), ("a", 1000, STRICT))
    assert refusal(state, ("a", 1000, STRICT)) == "a: has a reservation already: release it first"
    assert refusal(state, ("b", 0, SHARED)) == "b: 0 millicores: ask for more than none"
    assert refusal(state, ("b", 3500, SHARED)) == "b: wants 3.5 CPUs, and 3 CPUs are not given yet"


def test_strict_rounds_up_and_needs_no_quota() -> None:
    state = given(Reservations(RKUBE, apart=True), ("web", 1200, STRICT))
    assert len(state.cpus_of("web")) == 2
    assert state.grants["web"].ask.quota_millicores is None
    assert refusal(state, ("big", 22500, STRICT)) == "big: wants 23 CPUs, and 22 CPUs are not given yet"


def test_a_free_socket_is_given_whole() -> None:
    system = RKUBE.keys() - {0, 12}
    state = Reservations({cpu: RKUBE[cpu] for cpu in system}, apart=True)
    assert given(state, ("streamcluster", 12000, STRICT)).cpus_of("streamcluster") == {
        cpu for cpu, place in RKUBE.items() if place.socket == 1
    }


def test_threads_of_a_core_stay_together_and_single_ones_fill_up_what_is_used() -> None:
    pairs = take(RKUBE, 4, RKUBE)
    assert sorted(RKUBE[cpu].core for cpu in pairs) == [0, 0, 1, 1]
    rest = RKUBE.keys() - pairs - {cpu for cpu in RKUBE if RKUBE[cpu] == (1, 3)}
    one = take(rest - {2}, 1, RKUBE)
    assert one == {14}  # thread 2 is taken, so its sibling is the least loss


def test_who_gets_cores_of_its_own_gets_them_after_all_others_left_them() -> None:
    before = given(cores(4), ("batch", 1000, SHARED))
    after = given(before, ("web", 2000, EXCLUSIVE))
    assert [(name, sorted(cpus)) for name, cpus in writes(before, after)] == [
        ("", [2, 3]),
        ("batch", [2, 3]),
        ("web", [0, 1]),
    ]
    assert [name for name, _ in writes(after, release(after, "web"))] == ["", "batch"]
