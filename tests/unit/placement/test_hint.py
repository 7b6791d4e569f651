"""Moves on fleets small enough to check by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.placement import AdvisedMove, Fit, FleetHost, Lately, Resident, fit, hint, wait_with
from dasec.placement.hint import is_liked
from dasec.placement.waits import queued_part
from dasec.reservations import Ask, CpuClass, Refused

QUIET = Lately()
WEB = Resident("web", 8, running_cores=3, waiting_cores=0.5, blame_cores=0.75)
BATCH = Resident("batch", 8, running_cores=3, waiting_cores=1.5, blame_cores=0.25)
FULL = FleetHost("full", 8, 0.25, (WEB, BATCH))
EMPTY = FleetHost("empty", 16, 0.0, ())


def test_the_culprit_goes_and_not_its_victim() -> None:
    move = hint([FULL, EMPTY], QUIET)
    assert move is not None
    assert (move.workload, move.source, move.target) == ("web", "full", "empty")
    assert move.source_wait[1] < 0.05
    assert move.target_wait[1] == 0
    assert move.workload_wait[0] == pytest.approx(1 / 7)


def test_a_workload_does_not_go_where_it_was_within_a_day() -> None:
    assert hint([FULL, EMPTY], Lately(within_a_day=frozenset({("web", "empty")}))) is None


@pytest.mark.parametrize("name", ["full", "empty"])
def test_a_host_rests_after_something_came_or_went(name: str) -> None:
    assert hint([FULL, EMPTY], Lately(unsettled=frozenset({name}))) is None


def test_what_is_to_stay_stays() -> None:
    kept = replace(FULL, residents=(replace(WEB, may_move=False), BATCH))
    assert hint([kept, EMPTY], QUIET) is None


def test_a_host_that_waits_little_is_left_alone() -> None:
    assert hint([replace(FULL, wait=0.1), EMPTY], QUIET) is None


def test_a_target_that_would_wait_too_much_is_none() -> None:
    assert hint([FULL, replace(EMPTY, cores=4)], QUIET) is None


def test_a_target_with_a_workload_of_the_same_name_is_none() -> None:
    assert hint([FULL, replace(EMPTY, residents=(replace(WEB, running_cores=0.1),))], QUIET) is None


def test_a_reserved_workload_goes_where_it_has_most_cores_of_its_own() -> None:
    ask = Ask("web", 3500, CpuClass.EXCLUSIVE)
    source = replace(FULL, residents=(replace(WEB, ask=ask), BATCH))
    other = Resident("other", 1, 0.1, 0, 0, Ask("other", 500, CpuClass.EXCLUSIVE))
    crowded = FleetHost("crowded", 16, 0.0, (other,))
    move = hint([source, crowded, replace(EMPTY, name="zero")], QUIET)
    assert move is not None
    assert (move.target, move.fit.whole_cores) == ("zero", 3)
    small = FleetHost("small", 3, 0.0, ())
    found = fit(small, source.residents[0])
    assert isinstance(found, Refused)
    assert "wants 3.5 CPUs, and 3 CPUs" in found.why


def test_what_is_wanted_now_must_fit_beside_what_is_there() -> None:
    found = fit(replace(EMPTY, cores=6, residents=(BATCH,)), WEB)
    assert isinstance(found, Refused)
    assert found.why == "web: wants 3.5 CPUs, and 1.5 CPUs are not given yet"


def test_one_core_waits_as_a_queue_of_one_server_does() -> None:
    # A server that is busy for half of the time holds one on average, and half of that waits.
    assert queued_part(1, 100, 1.0) == pytest.approx(0.5)


def test_nobody_waits_where_each_has_a_core() -> None:
    assert queued_part(8, 8, 8.0) == 0
    assert queued_part(8, 9, 9.0) == pytest.approx(1 / 9)
    assert queued_part(8, 8, 0.0) == 0


def test_what_a_host_waits_beyond_the_queue_stays_and_grows_with_load() -> None:
    pinned = FleetHost("pinned", 8, 0.2, (Resident("pair", 8, 2, 0.5, 0),))
    assert wait_with(pinned, 8, 1.0) == pytest.approx(0.2)
    # Idle: 5.5 of 8 cores before, 2.75 after.
    assert wait_with(pinned, 8, 5.25) == pytest.approx(0.4)


LIKED = AdvisedMove("web", "a", "b", (0.3, 0.24), (0.0, 0.05), (0.03, 0.05), 0.1, Fit())


@pytest.mark.parametrize(
    ("move", "liked"),
    [
        (LIKED, True),
        (replace(LIKED, source_wait=(0.3, 0.25)), False),
        (replace(LIKED, target_wait=(0.0, 0.051)), False),
        (replace(LIKED, workload_wait=(0.02, 0.041)), False),
        (replace(LIKED, spared_cores=0.0), False),
    ],
    ids=["at every margin", "hardly better", "target too bad", "workload too bad", "no wait spared"],
)
def test_a_move_is_liked_up_to_the_margins(move: AdvisedMove, liked: bool) -> None:
    assert is_liked(move) is liked
