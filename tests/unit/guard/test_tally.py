"""Who speaks for a workload when its waiting is measured."""

from __future__ import annotations

from dasec.guard.tally import Services, counted, weighed
from dasec.model import Period

from ...builders import RUNNING, Group, Row, period, vcpu_id

SERVER, BATCH = 0, 1


def fed(outside: int | None, woken_by: list[tuple[int, int]] | None = None) -> Period:
    """A server that another process wakes, and background that its own timer wakes as often."""
    server = Row(8, RUNNING, ready_ms=8, wakeups=30, external=outside, woken_by=woken_by or [])
    return period(Group("a", [server, Row(40, RUNNING, ready_ms=20, wakeups=40, external=0)]))


def voices(made: Period) -> dict[int, int]:
    ((services,), _) = weighed(counted((), made), made)
    assert isinstance(services, Services)
    rows = {vcpu_id(0, row): row for row in (SERVER, BATCH)}
    return {rows[vcpu]: count for vcpu, count in services.counts}


def test_who_is_fed_from_outside_speaks_and_background_of_its_own_timer_does_not() -> None:
    assert voices(fed(25)) == {SERVER: 25}


def test_a_wake_up_or_two_from_outside_are_no_service() -> None:
    assert voices(fed(2)) == {SERVER: 30, BATCH: 40}


def test_where_siblings_wake_each_other_that_is_what_counts() -> None:
    assert voices(fed(25, [(BATCH, 12)])) == {BATCH: 12}


def test_where_nobody_tells_who_woke_all_speak() -> None:
    assert voices(fed(None)) == {SERVER: 30, BATCH: 40}
