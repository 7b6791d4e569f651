"""What a trace says of who ran beside whom."""

from __future__ import annotations

import pytest

from tests.sched_ext.switches import read, together_s


def switch(cpu: int, now_s: float, before: int, after: int, state: str = "R") -> str:
    names = f"prev_comm=p q prev_pid={before} prev_prio=120 prev_state={state}"
    return (
        f"          python-{before}     [00{cpu}] d..2. {now_s:12.6f}: sched_switch: {names}"
        f" ==> next_comm=n next_pid={after} next_prio=120"
    )


def waking(now_s: float, pid: int) -> str:
    return (
        f"          <idle>-0       [000] dNh.. {now_s:12.6f}: sched_waking: comm=p pid={pid} prio=120"
        " target_cpu=000"
    )


LINES = (
    "# tracer: nop",
    switch(0, 10.0, 0, 11, "R"),
    switch(1, 10.5, 0, 21, "R"),
    switch(0, 11.0, 11, 12, "S"),
    waking(11.25, 11),
    switch(0, 12.0, 12, 11),
    switch(1, 12.5, 21, 0, "S"),
    switch(0, 13.0, 11, 12, "R+"),
)


def test_who_ran_how_long_and_waited_for_what() -> None:
    trace = read(LINES, [11, 12, 21, 99])
    assert [trace.ran_s(pid) for pid in (11, 12, 21)] == [2.0, 1.0, 2.0]
    assert trace.waits_s[11] == [0.75, 0.0]
    assert trace.waits_s[12] == [1.0]
    assert trace.waits_s[99] == [3.0]
    assert trace.wakes_s == {11: [0.75]}


@pytest.mark.parametrize(
    ("cookies", "expected"),
    [
        ({}, []),
        ({11: 7, 12: 7, 21: 7}, []),
        ({11: 7, 12: 7}, [0.5, 1.0, 0.5]),
        ({11: 7, 12: 8, 21: 7}, [1.0]),
    ],
)
def test_who_ran_beside_another_cookie(cookies: dict[int, int], expected: list[float]) -> None:
    assert together_s(read(LINES, []), [[0, 1]], cookies) == expected


def test_nobody_is_beside_an_idle_cpu_or_another_core() -> None:
    assert together_s(read(LINES, []), [[0, 2]], {11: 7, 12: 8}) == []
