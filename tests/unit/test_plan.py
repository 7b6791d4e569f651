"""The plan, from tables worked by hand: what is left out, the order, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from dasec.model import Change, Decision, Knob, Knobs, Period, Reason, Stake, VcpuId
from dasec.plan import Plan, plan

from ..builders import Group, Row, core_set, period, vcpu_id

A0, A1, A2, A3 = (vcpu_id(0, row) for row in range(4))
B0, B1 = vcpu_id(1, 0), vcpu_id(1, 1)
WEIGHT, LATENCY, AFFINITY = Knob.WEIGHT, Knob.RESCHEDULING_LATENCY, Knob.AFFINITY


def wish(
    weight: int | None = None, latency_ns: int | None = None, cores: tuple[int, ...] | None = None
) -> Knobs:
    return Knobs(weight, latency_ns, None if cores is None else core_set(*cores))


def two_workloads() -> Period:
    """a: four vCPUs, two on each core; b: two, one on each. Weights 1024, latencies 4 ms, nobody pinned."""
    a = [Row(core=0), Row(core=0), Row(core=1), Row(core=1)]
    return period(Group("a", a), Group("b", [Row(core=0), Row(core=1)]))


def planned(wishes: Mapping[VcpuId, Knobs], *reasons: Reason, of: Period | None = None) -> Plan:
    return plan(of or two_workloads(), Decision(wishes, reasons))


def steps(made: Plan) -> list[tuple[VcpuId, Knob, object]]:
    return [(change.vcpu, change.knob, change.new) for change in made.changes]


def test_a_change_has_prior_and_new_value_and_the_rule() -> None:
    reason = Reason(A1, LATENCY, "rla.cut")
    made = planned({A1: wish(latency_ns=3_600_000)}, Reason(A1, WEIGHT, "tsa.raise"), reason)
    assert made == Plan((Change(A1, LATENCY, 4_000_000, 3_600_000, "rla.cut"),))


def test_a_change_without_a_reason_says_so() -> None:
    (change,) = planned({A1: wish(latency_ns=3_600_000)}).changes
    assert change.rule == "unexplained"


def test_weights_fall_before_they_rise_then_come_latencies_then_affinities() -> None:
    #        weight         latency    core
    # a0     1024 → 1126    –          0 → 1
    # a1     1024 →  973    4 → 3.6    –
    # a2     1024 →  973    –          1 → 0
    # a3     1024 → 1024    4 → 4      –          sum 1126 + 2 × 973 + 1024 = 4096
    made = planned(
        {
            A0: wish(1126, cores=(1,)),
            A1: wish(973, 3_600_000),
            A2: wish(973, cores=(0,)),
            A3: wish(1024, 4_000_000),
        }
    )
    assert steps(made) == [
        (A1, WEIGHT, 973),
        (A2, WEIGHT, 973),
        (A0, WEIGHT, 1126),
        (A1, LATENCY, 3_600_000),
        (A0, AFFINITY, {1}),
        (A2, AFFINITY, {0}),
    ]
    assert made.violations == ()


def test_weights_of_all_workloads_fall_before_any_rises() -> None:
    made = planned({A0: wish(1126), A1: wish(922), B0: wish(1126), B1: wish(922)})
    assert [change.vcpu for change in made.changes] == [A1, B1, A0, B0]


def test_what_is_there_already_makes_an_empty_plan() -> None:
    made = two_workloads()
    assert plan(made, Decision(made.knobs)) == Plan()
    assert plan(made, Decision()) == Plan()


def test_who_is_gone_or_in_no_workload_is_left_out() -> None:
    made = two_workloads()
    gone = replace(made, knobs={vcpu: knobs for vcpu, knobs in made.knobs.items() if vcpu != A1})
    assert planned({A1: wish(latency_ns=3), vcpu_id(6, 6): wish(latency_ns=3)}, of=gone) == Plan()


def test_a_knob_that_is_not_ours_is_left_out() -> None:
    bare = Row(weight=None, latency_us=None, movable=False)
    made = period(Group("a", [bare, Row(weight=None), Row(weight=None)]))
    assert planned({A0: wish(1126, 3, (1,)), A1: wish(922)}, of=made) == Plan()


def test_the_halves_of_every_swap_stand_side_by_side() -> None:
    # 0 → 1: a0, a1, b0;  1 → 0: a2, a3, b1. Each pairs with the first that comes from where it goes
    made = planned(
        {vcpu: wish(cores=(1,)) for vcpu in (A0, A1, B0)} | {vcpu: wish(cores=(0,)) for vcpu in (A2, A3, B1)}
    )
    assert [change.vcpu for change in made.changes] == [A0, A2, A1, A3, B0, B1]


def test_a_swap_is_recognised_by_where_the_vcpus_are_pinned() -> None:
    # a1 and a0 were last on core 0, but a1 is pinned to core 1
    made = period(Group("a", [Row(core=0), Row(core=0, pin=1), Row(core=0)]))
    assert steps(planned({A0: wish(cores=(1,)), A2: wish(cores=(1,)), A1: wish(cores=(0,))}, of=made)) == [
        (A0, AFFINITY, {1}),
        (A1, AFFINITY, {0}),
        (A2, AFFINITY, {1}),
    ]


def test_an_affinity_of_several_cores_is_no_half_of_a_swap() -> None:
    made = period(Group("a", [Row(core=0, pin=0), Row(core=1, pin=1)]))
    assert [
        change.vcpu for change in planned({A0: wish(cores=(0, 1)), A1: wish(cores=(0,))}, of=made).changes
    ] == [
        A0,
        A1,
    ]


@pytest.mark.parametrize(
    ("wishes", "complaint"),
    [
        # 1126 + 3 × 1024 = 4198
        ({A0: wish(1126)}, "workload a: weights that add up to 4198: must stay 4096"),
        ({A0: wish(922)}, "workload a: weights that add up to 3994: must stay 4096"),
        # mean 1024: at least 128, at most 8192 (which four vCPUs cannot reach)
        (
            {A0: wish(127), A1: wish(1921)},
            "workload a: weights 127 to 1921: must be within 1/8 and 8 times their mean of 1024",
        ),
        ({A0: wish(latency_ns=0)}, "workload a: latency 0 ns of tid 1001: must be positive"),
        ({A0: wish(latency_ns=-1)}, "workload a: latency -1 ns of tid 1001: must be positive"),
        (
            {A0: wish(cores=())},
            "workload a: affinity [] of tid 1001: must be one or more of its allowed CPUs [0, 1]",
        ),
        (
            {A0: wish(cores=(1, 2))},
            "workload a: affinity [1, 2] of tid 1001: must be one or more of its allowed CPUs [0, 1]",
        ),
    ],
)
def test_a_violation_drops_all_of_its_workload_and_nothing_of_the_others(
    wishes: Mapping[VcpuId, Knobs], complaint: str
) -> None:
    made = planned({**wishes, A2: wish(latency_ns=3_600_000), B0: wish(latency_ns=3_600_000)})
    assert steps(made) == [(B0, LATENCY, 3_600_000)]
    assert made.violations == (complaint,)


def test_the_bounds_themselves_are_no_violation() -> None:
    # 128 + 1920 + 1024 + 1024 = 4096; an eighth of the mean is 128
    assert planned({A0: wish(128), A1: wish(1920)}).violations == ()
    # 16 vCPUs: 8192 + 8 × 547 + 7 × 545 + 1; eight times the mean is 8192
    sixteen = period(Group("a", [Row()] * 16))
    ids = [vcpu_id(0, row) for row in range(16)]
    fitting = {vcpu: wish(weight) for vcpu, weight in zip(ids, [8192, 548, *[546] * 14], strict=True)}
    assert len(planned(fitting, of=sixteen).changes) == 16
    beyond = fitting | {ids[0]: wish(8193), ids[1]: wish(547)}
    assert len(planned(beyond, of=sixteen).violations) == 1


def test_only_weights_that_are_ours_count_in_the_sum() -> None:
    made = period(Group("a", [Row(), Row(weight=None), Row()]))
    assert planned({A0: wish(1126), A2: wish(922)}, of=made).violations == ()


def test_half_of_a_swap_is_dropped_with_the_other_half() -> None:
    # a0 ↔ b1, and a's sum of weights does not hold; b0's latency has nothing to do with it
    made = planned({A0: wish(1126, cores=(1,)), B0: wish(latency_ns=3_600_000), B1: wish(cores=(0,))})
    assert steps(made) == [(B0, LATENCY, 3_600_000)]
    assert made.violations == (
        "workload a: weights that add up to 4198: must stay 4096",
        "workload b: affinity of tid 2002: half of a refused swap",
    )


def test_where_the_sum_is_said_the_weights_add_up_to_it() -> None:
    made = period(Group("a", [Row(weight=2304), Row(weight=384)]))
    ids = vcpu_id(0, 0), vcpu_id(0, 1)
    back = Decision({ids[0]: Knobs(1755, None, None), ids[1]: Knobs(293, None, None)}, sums={"a": 2048})
    assert plan(made, back).violations == ()
    wrong = ("workload a: weights that add up to 2048: must stay 2688",)
    assert plan(made, replace(back, sums={"b": 2048})).violations == wrong
    wrong = ("workload a: weights that add up to 2048: must stay 2049",)
    assert plan(made, replace(back, sums={"a": 2049})).violations == wrong


def test_with_stakes_the_sum_by_demand_counts_and_not_the_plain_sum() -> None:
    made = period(Group("a", [Row(), Row()]))
    ids = vcpu_id(0, 0), vcpu_id(0, 1)
    stakes = {ids[0]: Stake(1024, 10), ids[1]: Stake(1024, 70)}
    fair = Decision({ids[0]: Knobs(4096, None, None), ids[1]: Knobs(585, None, None)}, stakes=stakes)
    assert [change.new for change in plan(made, fair).changes] == [585, 4096]
    assert plan(made, fair).violations == ()


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        (9000, 200, "weight 9000 of tid 1001: must be within 1/8 and 8 times its neutral weight of 1024"),
        (1024, 127, "weight 127 of tid 1002: must be within 1/8 and 8 times its neutral weight of 1024"),
        (1024, 1700, "weights by demand that add up to 129240: must not be more than 40 % above 81920"),
    ],
)
def test_with_stakes_weights_out_of_bounds_and_sums_above_the_due_are_refused(
    first: int, second: int, complaint: str
) -> None:
    made = period(Group("a", [Row(), Row()]))
    ids = vcpu_id(0, 0), vcpu_id(0, 1)
    stakes = {ids[0]: Stake(1024, 10), ids[1]: Stake(1024, 70)}
    wanted = Decision({ids[0]: Knobs(first, None, None), ids[1]: Knobs(second, None, None)}, stakes=stakes)
    assert plan(made, wanted).changes == ()
    assert plan(made, wanted).violations == (f"workload a: {complaint}",)
