"""RLA from tables worked by hand: latencies in µs, floor 1400, ceiling 12000, start 4000.

One workload of four vCPUs on two cores × 80 ms: slices of 40 ms, exhausted from 36 ms on. Rows without
another number dispatch ten times, so that 10 ms make bursts of 1 ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dasec.entitlement import standings
from dasec.model import Knob, Period, Reason, ThreadState, VcpuId
from dasec.rla import Adjustment, RlaParameters, adjust

from ..builders import ASLEEP, READY, RUNNING, Group, Row, period, vcpu_id

DEFAULT = RlaParameters()
LETTER = RlaParameters(respect_burst=False)
LITTLE = Row(5, ASLEEP)
STUCK = Row(10, READY, latency_us=1400)


def four(*rows: Row) -> list[Row]:
    """The rows, filled up to four with vCPUs that no rule applies to."""
    return [*rows, *[LITTLE] * (4 - len(rows))]


def seen(made: Period) -> tuple[VcpuId, ...]:
    return tuple(made.knobs)


def adjusted(rows: Sequence[Row], parameters: RlaParameters = DEFAULT) -> Adjustment:
    made = period(Group("a", rows))
    return adjust(standings(made), seen(made), parameters)


def latencies_after(rows: Sequence[Row], parameters: RlaParameters = DEFAULT) -> list[float | None]:
    wanted = adjusted(rows, parameters).latencies_ns
    return [
        wanted[vcpu_id(0, row)] / 1000 if vcpu_id(0, row) in wanted else each.latency_us
        for row, each in enumerate(rows)
    ]


def rule_of(adjustment: Adjustment, row: int) -> str | None:
    return next((reason.rule for reason in adjustment.reasons if reason.vcpu == vcpu_id(0, row)), None)


@pytest.mark.parametrize(
    ("row", "latency_us", "rule"),
    [
        # awake, slice (40 ms) not exhausted: × 0.90
        (Row(10, READY, latency_us=4000), 3600, "rla.cut"),
        (Row(10, RUNNING, latency_us=4000), 3600, "rla.cut"),
        (Row(35.9, RUNNING, latency_us=4000, dispatches=99), 3600, "rla.cut"),
        # … not below the floor: 1500 × 0.90 = 1350
        (Row(10, READY, latency_us=1500), 1400, "rla.cut"),
        # idle, slice exhausted (36 = 40 − 4): / 0.90
        (Row(40, ASLEEP, latency_us=3600), 4000, "rla.raise"),
        (Row(36, ASLEEP, latency_us=3600), 4000, "rla.raise"),
        # … not above the ceiling: 11500 / 0.90 = 12777.8
        (Row(40, ASLEEP, latency_us=11500), 12000, "rla.raise"),
        # everything else stays
        (Row(36, READY, latency_us=4000), 4000, None),
        (Row(36, RUNNING, latency_us=4000), 4000, None),
        (Row(35.9, ASLEEP, latency_us=4000), 4000, None),
        (Row(10, ThreadState.UNKNOWN, latency_us=4000), 4000, None),
        (Row(40, ThreadState.UNKNOWN, latency_us=4000), 4000, None),
        (Row(10, READY, latency_us=1400), 1400, None),
        (Row(40, ASLEEP, latency_us=12000), 12000, None),
        (Row(latency_us=4000), 4000, None),
        (Row(new=True, latency_us=4000), 4000, None),
        (Row(10, READY, latency_us=None), None, None),
    ],
)
def test_what_a_vcpu_did_decides_its_latency(row: Row, latency_us: float | None, rule: str | None) -> None:
    assert latencies_after(four(row)) == [latency_us, 4000, 4000, 4000]
    assert rule_of(adjusted(four(row)), 0) == rule


def test_a_step_up_undoes_a_step_down() -> None:
    down = latencies_after(four(Row(10, READY, latency_us=4000)))[0]
    assert down == 3600
    assert latencies_after(four(Row(40, ASLEEP, latency_us=down)))[0] == 4000


@pytest.mark.parametrize(
    ("row", "parameters", "latency_us"),
    [
        # burst 20 ms / 5 = 4 ms; 4200 × 0.90 = 3780
        (Row(20, READY, dispatches=5, latency_us=4200), DEFAULT, 4000),
        (Row(20, READY, dispatches=5, latency_us=4200), LETTER, 3780),
        # a burst of 5 ms is above the latency already: no cut, and no raise either
        (Row(20, READY, dispatches=4, latency_us=4200), DEFAULT, 4200),
        # a burst of 1 ms is below the floor
        (Row(10, READY, dispatches=10, latency_us=1500), DEFAULT, 1400),
        # never taken off the core: one burst of all 8 ms
        (Row(8, RUNNING, dispatches=0, latency_us=5000), DEFAULT, 5000),
        (Row(8, RUNNING, dispatches=0, latency_us=5000), LETTER, 4500),
    ],
)
def test_the_latency_is_not_cut_below_the_burst_if_so_set(
    row: Row, parameters: RlaParameters, latency_us: float
) -> None:
    assert latencies_after(four(row), parameters)[0] == latency_us


@pytest.mark.parametrize(
    ("latency_us", "row", "after_us"),
    [
        (13000, Row(10, READY), 11700),  # 13000 × 0.90 is inside
        (20000, Row(10, READY), 12000),  # 18000 would still be above the ceiling
        (20000, Row(40, ASLEEP), 20000),  # no raise, and no rule that cuts
        (1000, Row(40, ASLEEP), 1400),  # 1111 would still be below the floor
        (1000, Row(10, READY), 1000),  # no cut, and no rule that raises
    ],
)
def test_a_latency_that_others_put_out_of_range_is_not_decided_out_of_range(
    latency_us: float, row: Row, after_us: float
) -> None:
    given = Row(row.consumed_ms, row.state, latency_us=latency_us)
    assert latencies_after(four(given))[0] == after_us


def test_a_vcpu_that_rla_sees_for_the_first_time_gets_the_start_value_and_no_judgement_yet() -> None:
    made = period(
        Group(
            "a",
            [
                Row(10, READY, latency_us=1400),
                Row(10, READY, latency_us=9000),
                Row(new=True, latency_us=3000),
            ],
        )
    )
    ids = tuple(made.knobs)
    first = adjust(standings(made), (), DEFAULT)
    assert first.latencies_ns == dict.fromkeys(ids, 4_000_000)
    assert {reason.rule for reason in first.reasons} == {"rla.start"}
    assert first.started == ids


def test_only_newcomers_get_the_start_value_and_those_who_left_are_forgotten() -> None:
    made = period(Group("a", four(Row(10, READY, latency_us=9000), Row(10, READY, latency_us=9000))))
    old, new, *others = made.knobs
    gone = vcpu_id(7, 7)
    result = adjust(standings(made), (gone, *others, old), DEFAULT)
    assert result.latencies_ns == {new: 4_000_000, old: 8_100_000}
    assert set(result.started) == {old, new, *others}


def test_a_vcpu_that_starts_at_the_start_value_needs_no_write() -> None:
    made = period(Group("a", four(Row(latency_us=4000), Row(latency_us=None))))
    result = adjust(standings(made), (), DEFAULT)
    assert result.latencies_ns == {}
    assert result.started == tuple(made.knobs)


# The third rule: row 0 is stuck, that is at the floor, awake, and its slice of 40 ms not exhausted.


def test_the_only_source_of_a_stuck_vcpu_is_cut_by_a_whole_step() -> None:
    rows = four(Row(10, READY, latency_us=1400, woken_by=[(1, 7)]), Row(5, latency_us=8000))
    assert latencies_after(rows) == [1400, 7200, 4000, 4000]
    assert rule_of(adjusted(rows), 1) == "rla.source"


def test_several_sources_share_the_step_by_how_often_they_woke() -> None:
    # 30 : 10 → three quarters and one quarter of 10 %: 8000 × (1 − 0.075) = 7400, 4000 × (1 − 0.025) = 3900
    stuck = Row(10, RUNNING, latency_us=1400, woken_by=[(1, 30), (2, 10)])
    rows = four(stuck, Row(5, latency_us=8000), Row(5, latency_us=4000))
    assert latencies_after(rows) == [1400, 7400, 3900, 4000]


def test_what_a_source_gets_from_several_stuck_vcpus_adds_up() -> None:
    # row 2 is half of the wake-ups of row 0, and a quarter of those of row 1: 7.5 % of 8000
    rows = [
        Row(10, READY, latency_us=1400, woken_by=[(2, 5), (3, 5)]),
        Row(10, READY, latency_us=1400, woken_by=[(2, 1), (3, 3)]),
        Row(5, latency_us=8000),
        LITTLE,
    ]
    assert latencies_after(rows)[2] == 7400


def test_a_source_is_never_cut_by_more_than_one_step_in_a_period() -> None:
    rows = [
        Row(10, READY, latency_us=1400, woken_by=[(2, 5)]),
        Row(10, READY, latency_us=1400, woken_by=[(2, 9)]),
        Row(5, latency_us=8000),
        LITTLE,
    ]
    assert latencies_after(rows)[2] == 7200


def test_a_source_that_was_cut_for_its_own_sake_is_not_cut_again() -> None:
    rows = four(Row(10, READY, latency_us=1400, woken_by=[(1, 7)]), Row(10, READY, latency_us=8000))
    assert latencies_after(rows)[1] == 7200
    assert rule_of(adjusted(rows), 1) == "rla.cut"


def test_a_source_that_would_be_raised_is_cut_instead() -> None:
    rows = four(Row(10, READY, latency_us=1400, woken_by=[(1, 7)]), Row(40, ASLEEP, latency_us=8000))
    assert latencies_after(rows)[1] == 7200
    assert [reason.rule for reason in adjusted(rows).reasons] == ["rla.source"]


def test_a_source_at_its_own_limit_stays_there_even_if_it_would_have_been_raised() -> None:
    rows = four(Row(10, READY, latency_us=1400, woken_by=[(1, 7)]), Row(40, ASLEEP, latency_us=1400))
    assert latencies_after(rows)[1] == 1400
    assert adjusted(rows).reasons == []


def test_a_source_is_not_cut_below_the_floor_nor_below_its_burst() -> None:
    # 10 / 4 = 2.5 ms
    stuck = Row(10, READY, latency_us=1400, woken_by=[(1, 1)])
    assert latencies_after(four(stuck, Row(5, latency_us=1500)))[1] == 1400
    burst = Row(10, ASLEEP, dispatches=4, latency_us=2600)
    assert latencies_after(four(stuck, burst))[1] == 2500
    assert latencies_after(four(stuck, burst), LETTER)[1] == 2340


@pytest.mark.parametrize(
    "stuck",
    [
        pytest.param(Row(10, READY, latency_us=1401, woken_by=[(1, 7)]), id="not yet at the floor"),
        pytest.param(Row(36, READY, latency_us=1400, woken_by=[(1, 7)]), id="slice exhausted"),
        pytest.param(Row(10, ASLEEP, latency_us=1400, woken_by=[(1, 7)]), id="idle"),
        pytest.param(Row(10, ThreadState.UNKNOWN, latency_us=1400, woken_by=[(1, 7)]), id="state unknown"),
        pytest.param(Row(10, READY, latency_us=None, woken_by=[(1, 7)]), id="no latency"),
        pytest.param(Row(10, READY, latency_us=1400), id="woken by nobody"),
    ],
)
def test_sources_are_left_alone_as_long_as_the_woken_one_is_not_stuck(stuck: Row) -> None:
    assert latencies_after(four(stuck, Row(5, latency_us=8000)))[1] == 8000


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(Row(5, latency_us=None), id="no latency"),
        pytest.param(Row(new=True, latency_us=8000), id="just come"),
    ],
)
def test_a_source_that_cannot_be_judged_is_left_alone_and_its_part_goes_to_nobody(source: Row) -> None:
    # 30 : 10 → the quarter of row 2 stays a quarter
    stuck = Row(10, READY, latency_us=1400, woken_by=[(1, 30), (2, 10)])
    rows = four(stuck, source, Row(5, latency_us=8000))
    assert latencies_after(rows) == [1400, source.latency_us, 7800, 4000]


def test_stuck_means_at_the_burst_where_that_is_the_limit() -> None:
    # burst 10 / 4 = 2.5 ms
    rows = four(Row(10, READY, dispatches=4, latency_us=2500, woken_by=[(1, 7)]), Row(5, latency_us=8000))
    assert latencies_after(rows) == [2500, 7200, 4000, 4000]
    assert latencies_after(rows, LETTER) == [2250, 8000, 4000, 4000]


def test_a_source_that_is_gone_is_no_trouble() -> None:
    made = period(Group("a", four(Row(10, READY, latency_us=1400, woken_by=[(9, 7)]))))
    assert adjust(standings(made), seen(made), DEFAULT).latencies_ns == {}


def test_the_reasons_name_the_rule_and_what_it_saw() -> None:
    (reason,) = adjusted(four(Row(10, READY, latency_us=4000))).reasons
    inputs = (("consumed_ns", 10_000_000), ("slice_ns", 40_000_000), ("dispatches", 10))
    assert reason == Reason(vcpu_id(0, 0), Knob.RESCHEDULING_LATENCY, "rla.cut", inputs)


def test_the_step_is_a_setting() -> None:
    assert latencies_after(four(Row(10, READY, latency_us=4000)), RlaParameters(step_percent=20))[0] == 3200
    assert latencies_after(four(Row(40, ASLEEP, latency_us=4000)), RlaParameters(step_percent=20))[0] == 5000


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"step_percent": 0}, "rla: step_percent is 0: give 1 to 50"),
        ({"step_percent": 51}, "rla: step_percent is 51"),
        ({"floor_ns": 0}, "rla: floor_ns is 0: give 1 or more"),
        ({"start_ns": 1_399_999}, "is not between floor_us"),
        ({"start_ns": 12_000_001}, "is not between floor_us"),
        ({"floor_ns": 5_000_000}, "rla: start_us 4000 is not between floor_us 5000 and ceiling_us 12000"),
    ],
)
def test_settings_without_sense_are_refused(setting: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        RlaParameters(**setting)  # type: ignore[arg-type]


def test_a_range_of_one_value_has_sense() -> None:
    assert RlaParameters(floor_ns=4_000_000, ceiling_ns=4_000_000).start_ns == 4_000_000
