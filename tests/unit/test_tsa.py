"""TSA from tables worked by hand: two cores × 80 ms, one workload, entitlement 160 ms, if not said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dasec.entitlement import Standing, standings
from dasec.model import Knob, Period, ThreadState
from dasec.tsa import Allocation, TsaParameters, apportion, reweigh

from ..builders import ASLEEP, READY, RUNNING, Group, Row, period, vcpu_id

DEFAULT = TsaParameters()
LITTLE = Row(5, ASLEEP)


def weights_after(
    rows: Sequence[Row], parameters: TsaParameters = DEFAULT, cores: int = 2
) -> list[int | None]:
    return after(period(Group("a", rows), cores=cores), parameters)


def after(made: Period, parameters: TsaParameters = DEFAULT) -> list[int | None]:
    (standing,) = standings(made, parameters.tick_ns)
    wanted = reweighed(standing, parameters).weights
    return [wanted.get(vcpu, made.knobs[vcpu].weight) for vcpu in standing.ids]


def reweighed(standing: Standing, parameters: TsaParameters = DEFAULT) -> Allocation:
    """Where nobody came or went since they had these weights together."""
    return reweigh(standing, dict(zip(standing.ids, weights_of(standing), strict=True)), parameters)


def weights_of(standing: Standing) -> list[int]:
    return [knobs.weight or 0 for knobs in standing.knobs]


def test_a_hungry_vcpu_gets_ten_percent_more_and_the_others_pay() -> None:
    # slices 160 / 4 = 40; row 0 used 40 and is ready
    # 1024 × 1.10 = 1126.4 → 1126;  (4096 − 1126) / 3 = 990
    assert weights_after([Row(40, READY), LITTLE, LITTLE, LITTLE]) == [1126, 990, 990, 990]


def test_the_others_pay_by_their_weights_and_remainders_go_to_the_largest() -> None:
    # weights  2000   1000    500    500      sum 4000; slices 80, 40, 20, 20
    # row 1 used 40 and is ready: 1000 → 1100; the others shrink from 3000 to 2900
    # exact    1933⅓  1100    483⅓   483⅓     one left over; equal remainders: the first
    rows = [Row(5, weight=2000), Row(40, READY, weight=1000), Row(5, weight=500), Row(5, weight=500)]
    assert weights_after(rows) == [1934, 1100, 483, 483]


def test_two_hungry_vcpus_both_grow() -> None:
    # 2 × 1126 = 2252;  (4096 − 2252) / 2 = 922
    assert weights_after([Row(40, READY), LITTLE, Row(39, READY), LITTLE]) == [1126, 922, 1126, 922]


def test_a_vcpu_that_would_fall_below_an_eighth_of_the_mean_stays_there_and_the_others_pay() -> None:
    # weights  2000   130    983    983     sum 4096, mean 1024, bounds 128 … 8192
    # row 0: slice 160 × 2000/4096 = 78.1; 2000 → 2200; the others shrink from 2096 to 1896
    # scaled   2200   117.6  889.2  889.2   117.6 is below 128
    # pinned   2200   128    884    884     (1896 − 128) / 2
    rows = [Row(80, READY, weight=2000), Row(5, weight=130), Row(5, weight=983), Row(5, weight=983)]
    assert weights_after(rows) == [2200, 128, 884, 884]


def test_when_nobody_can_pay_more_the_hungry_get_what_there_is() -> None:
    # 3700 × 1.10 = 4070, but the three others keep 128 each: 4096 − 384 = 3712
    rows = [Row(80, READY, weight=3700), Row(5, weight=130), Row(5, weight=130), Row(5, weight=136)]
    assert weights_after(rows) == [3712, 128, 128, 128]


def test_two_hungry_vcpus_share_what_there_is_by_their_weights() -> None:
    # weights  2400   1200   248   248      sum 4096; slices 80 (cut from 93.8), 46.9, …
    # wanted   2640   1320 = 3960, but 4096 − 2 × 128 = 3840: 2640 × 3840/3960 = 2560, 1320 × … = 1280
    rows = [Row(80, READY, weight=2400), Row(47, READY, weight=1200), Row(5, weight=248), Row(5, weight=248)]
    assert weights_after(rows) == [2560, 1280, 128, 128]


def test_nobody_grows_beyond_eight_times_the_mean() -> None:
    # 16 vCPUs, sum 7984 + 15 × 560 = 16384, mean 1024, upper bound 8192
    # 7984 × 1.10 = 8782 → 8192; the others share 8192: 8192 / 15 = 546.13, so 546 each and two of them 547
    rows = [Row(80, READY, weight=7984), *[Row(1, weight=560)] * 15]
    assert weights_after(rows) == [8192, 547, 547, *[546] * 13]


def test_weights_that_others_put_out_of_bounds_come_back_into_them() -> None:
    # 16 vCPUs: 15 × 100 + 14884 = 16384, mean 1024, bounds 128 … 8192. Row 0 is hungry: 100 → 110 → 128
    # The others would get 16256: row 15 at most 8192, and 8064 / 14 = 576 for each of the other 14
    rows = [Row(80, READY, weight=100), *[Row(weight=100)] * 14, Row(weight=14884)]
    assert weights_after(rows) == [128, *[576] * 14, 8192]


def test_when_the_others_may_not_hold_the_rest_the_hungry_get_it() -> None:
    # 16 vCPUs: 15 × 10 hungry, one with 16234, sum 16384, bounds 128 … 8192
    # the one may keep 8192, so the hungry get 8192: 546.13 each, two of them 547
    rows = [Row(16234, weight=16234), *[Row(80, READY, weight=10)] * 15]
    assert weights_after(rows) == [8192, 547, 547, *[546] * 13]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([LITTLE, LITTLE], id="nobody exhausted"),
        pytest.param([Row(80, READY), Row(80, READY)], id="everybody hungry"),
        pytest.param([Row(80, RUNNING), LITTLE], id="exhausted but running"),
        pytest.param([Row(80, ASLEEP), LITTLE], id="exhausted but idle"),
        pytest.param([Row(80, ThreadState.UNKNOWN), LITTLE], id="exhausted, state unknown"),
        pytest.param([Row(75.9, READY), LITTLE], id="ready but not exhausted"),
        pytest.param([Row(80, READY, weight=None), LITTLE], id="hungry, but its weight is not ours"),
        pytest.param([Row(80, READY), Row(5, weight=None)], id="nobody whose weight is ours can pay"),
        pytest.param([Row(80, READY, new=True), LITTLE], id="just come"),
    ],
)
def test_nothing_changes(rows: Sequence[Row]) -> None:
    assert weights_after(rows) == [row.weight for row in rows]


def test_a_vcpu_whose_weight_is_not_ours_stays_out() -> None:
    # slices 160/3 = 53.3; ours: 1024 + 1024; 1126 + 922
    assert weights_after([Row(54, READY), Row(5, weight=None), LITTLE]) == [1126, None, 922]


def test_a_vcpu_that_has_just_come_pays_like_any_other() -> None:
    assert weights_after([Row(40, READY), LITTLE, LITTLE, Row(new=True)]) == [1126, 990, 990, 990]


@pytest.mark.parametrize(
    ("rows", "weights"),
    [
        # who paid has gone: 2304 + 384 + 384 was 3072
        pytest.param([Row(5, weight=2304), Row(5, weight=384)], [1755, 293], id="who paid"),
        # who had most has gone: 8192 + 15 × 546 was 16384, of which two are left
        pytest.param([Row(5, weight=546), Row(5, weight=546)], [1024, 1024], id="who had most"),
        pytest.param([Row(5, weight=3742)], [1024], id="all others"),
        # 2304 and 384 are 1755 and 293, and the first takes a step from there: 1930.5, but no more than 15/16
        pytest.param([Row(80, READY, weight=2304), Row(5, weight=384)], [1920, 128], id="a hungry one stays"),
        pytest.param([Row(5, weight=2304), Row(5, weight=None)], [1024, None], id="one is somebody else's"),
    ],
)
def test_who_is_left_has_the_weights_with_which_they_came_by_what_they_have(
    rows: Sequence[Row], weights: Sequence[int | None]
) -> None:
    made = period(Group("a", rows))
    (standing,) = standings(made)
    allocation = reweigh(standing, dict.fromkeys(standing.ids, 1024), DEFAULT)
    wanted = [allocation.weights.get(vcpu, made.knobs[vcpu].weight) for vcpu in standing.ids]
    assert wanted == weights
    assert allocation.total == 1024 * sum(weight is not None for weight in weights)


def test_ties_go_to_the_lower_id_whatever_the_order_of_the_list() -> None:
    made = period(Group("a", [Row(80, READY), *[LITTLE] * 3, Row(weight=1025)]))
    (standing,) = standings(made)
    # sum 5121; 1126; the others: 3995 over 1024, 1024, 1024, 1025
    forwards = reweighed(standing).weights
    workload = made.workloads[0]
    turned = Period(
        made.index,
        made.length_ns,
        made.topology,
        (type(workload)(workload.name, workload.share, workload.vcpus[::-1]),),
        made.usage,
        made.knobs,
        made.core_of,
    )
    assert reweighed(standings(turned)[0]).weights == forwards
    assert sum(forwards.values()) == 5121


def test_the_step_and_the_span_are_settings() -> None:
    # 1024 × 1.5 = 1536; (4096 − 1536)/3 = 853.3
    assert weights_after([Row(40, READY), *[LITTLE] * 3], TsaParameters(step_percent=50)) == [
        1536,
        854,
        853,
        853,
    ]
    # span 2: bounds 512 … 2048
    rows = [Row(80, READY, weight=2000), Row(5, weight=520), Row(5, weight=788), Row(5, weight=788)]
    assert weights_after(rows, TsaParameters(weight_span=2)) == [2048, 512, 768, 768]


def test_the_reasons_name_the_rule_and_what_it_saw() -> None:
    made = period(Group("a", [Row(40, READY, core=0), Row(5, core=0), Row(5, core=1), Row(5, core=1)]))
    raised, *scaled = reweighed(standings(made)[0]).reasons
    assert raised == (
        vcpu_id(0, 0),
        Knob.WEIGHT,
        "tsa.raise",
        (("consumed_ns", 40_000_000), ("slice_ns", 40_000_000), ("cores", 2)),
    )
    assert [reason.vcpu for reason in scaled] == [vcpu_id(0, row) for row in (1, 2, 3)]
    assert {reason.rule for reason in scaled} == {"tsa.scale"}
    assert scaled[0].inputs == (("total", 4096), ("hungry", 1))


@pytest.mark.parametrize(
    ("weights", "total", "parts"),
    [
        ([1, 1, 1], 300, [100, 100, 100]),
        ([1, 1, 1], 182, [61, 61, 60]),
        ([2, 1], 100, [67, 33]),
        ([1, 99], 120, [20, 100]),  # 1.2 is below 20
        ([3, 1, 1], 170, [100, 35, 35]),  # 102 is above 100
        ([99, 1, 1], 150, [100, 25, 25]),  # 147 is further above 100 than twice 1.5 is below 20
        ([99, 1], 110, [90, 20]),  # both outside: 8.9 too much above, 18.9 too little below, the worse first
        ([30, 1], 120, [100, 20]),  # 116.1 and 3.9: 16.1 above and 16.1 below, both at once
    ],
)
def test_apportion_keeps_the_total_and_the_bounds(weights: list[int], total: int, parts: list[int]) -> None:
    assert apportion(weights, total, 20, 100) == parts


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"step_percent": 0}, "tsa: step_percent is 0: give 1 to 100"),
        ({"step_percent": 101}, "tsa: step_percent is 101"),
        ({"weight_span": 1}, "tsa: weight_span is 1: give 2 to 8"),
        ({"weight_span": 9}, "tsa: weight_span is 9"),
        ({"tick_ns": -1}, "tsa: tick_ns is -1: give 0 or more"),
    ],
)
def test_settings_without_sense_are_refused(setting: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        TsaParameters(**setting)  # type: ignore[arg-type]
