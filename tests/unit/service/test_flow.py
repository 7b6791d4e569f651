"""No kind of line comes oftener than a few times a minute, and none is lost from the count."""

from __future__ import annotations

from dasec.flow import LINES, WINDOW_NS, Flow
from dasec.hosts.threads.notices import Notices


class Clock:
    """Goes when it is told to."""

    now_ns = 5

    def __call__(self) -> int:
        return self.now_ns


def test_of_a_thousand_lines_of_a_kind_the_first_few_are_said_and_the_others_counted() -> None:
    clock = Clock()
    notices = Notices(clock)
    for thread in range(1000):
        notices.say("workload web: left alone", f"workload web: thread {thread} is left alone")
    assert notices.take() == tuple(f"workload web: thread {thread} is left alone" for thread in range(LINES))
    assert notices.take() == ()
    clock.now_ns += WINDOW_NS
    assert notices.take() == (f"workload web: left alone: {1000 - LINES} more in the last minute",)
    assert notices.take() == ()


def test_after_a_minute_lines_are_said_again() -> None:
    clock = Clock()
    flow = Flow(clock)
    for _ in range(3):
        assert [flow.lets_through("a") for _ in range(LINES + 1)] == [*[True] * LINES, False]
        clock.now_ns += WINDOW_NS
        assert flow.sums() == ["a: 1 more in the last minute"]


def test_one_workload_silences_no_other_and_few_lines_are_not_summed_up() -> None:
    clock = Clock()
    flow = Flow(clock)
    for _ in range(100):
        flow.lets_through("a")
    assert flow.lets_through("b")
    clock.now_ns += WINDOW_NS
    assert flow.sums() == [f"a: {100 - LINES} more in the last minute"]


def test_however_many_kinds_there_were_none_is_kept_longer_than_a_minute() -> None:
    clock = Clock()
    flow = Flow(clock)
    for kind in range(1000):
        flow.lets_through(str(kind))
    clock.now_ns += WINDOW_NS
    assert flow.sums() == []
    assert flow._windows == {}
