"""Entitlements and slices, from tables worked by hand. Times in ms unless said; two cores if not said."""

from __future__ import annotations

import pytest

from dasec.entitlement import entitlements_ns, is_exhausted, slices_ns, split_ns, standings
from dasec.model import Period

from ..builders import MS, READY, Group, Row, period, vcpu_id

EIGHT = [Row()] * 8


def entitled(made: Period) -> dict[str, float]:
    return {name: ns / MS for name, ns in entitlements_ns(made).items()}


def slices(made: Period, group: int, count: int) -> list[float]:
    found = slices_ns(made)
    return [found[vcpu_id(group, row)] / MS for row in range(count)]


def test_the_cores_are_divided_by_share() -> None:
    # 4 cores × 80 = 320; shares 1 : 3 → 80 and 240
    made = period(Group("a", EIGHT, 1024), Group("b", EIGHT, 3072), cores=4)
    assert entitled(made) == {"a": 80, "b": 240}


def test_what_a_workload_with_few_vcpus_cannot_use_goes_to_the_others() -> None:
    # 320; by share a would get 240, but one vCPU can use 80 → b gets the other 240
    made = period(Group("a", [Row()], 3072), Group("b", EIGHT, 1024), cores=4)
    assert entitled(made) == {"a": 80, "b": 240}


def test_what_one_leaves_is_divided_among_the_others_by_share() -> None:
    # 4 cores = 320, shares 1 : 1 : 3    limit    a fifth is 64    what a leaves: 280, shares 1 : 3
    # a  quota 0.5                          40    full                                          40
    # b  one vCPU                           80    not full                                      70
    # c  eight vCPUs                       640    not full                                     210
    made = period(
        Group("a", EIGHT, 1024, quota_cores=0.5), Group("b", [Row()], 1024), Group("c", EIGHT, 3072), cores=4
    )
    assert entitled(made) == {"a": 40, "b": 70, "c": 210}


def test_qemus_main_thread_makes_no_domain_richer() -> None:
    # 4 cores = 320, equal shares; two vCPUs can use 160 and one 80, with QEMU's own thread beside them or not
    main = Row(emulator=True)
    with_mains = period(Group("a", [Row(), Row(), main]), Group("b", [Row(), main]), cores=4)
    without = period(Group("a", [Row(), Row()]), Group("b", [Row()]), cores=4)
    assert entitled(with_mains) == entitled(without) == {"a": 160, "b": 80}


def test_cores_that_only_qemus_main_thread_may_use_count_for_nothing() -> None:
    rows = [Row(allowed=[0]), Row(allowed=[0]), Row(allowed=[1, 2, 3], emulator=True)]
    assert entitled(period(Group("a", rows), cores=4)) == {"a": 80}


def test_qemus_main_thread_has_its_slice_of_what_the_domain_is_due() -> None:
    made = period(Group("a", [Row(), Row(), Row(emulator=True)], quota_cores=1.5), cores=4)
    assert slices(made, 0, 3) == [40, 40, 40]


def test_filling_goes_on_until_nobody_else_is_full() -> None:
    # 4 cores = 320, equal shares      limit    round 1: 320/3 = 106.7    round 2: 280/2 = 140    rest
    # a  quota 0.5                        40    full                                               40
    # b  one vCPU                         80    full                                               80
    # c  eight vCPUs                     640                                                      200
    made = period(Group("a", EIGHT, quota_cores=0.5), Group("b", [Row()]), Group("c", EIGHT), cores=4)
    assert entitled(made) == {"a": 40, "b": 80, "c": 200}


def test_nobody_gets_more_than_all_can_use() -> None:
    # 4 cores = 320, but two single vCPUs can use 80 each
    assert entitled(period(Group("a", [Row()]), Group("b", [Row()]), cores=4)) == {"a": 80, "b": 80}


def test_a_quota_above_the_number_of_vcpus_changes_nothing() -> None:
    assert entitled(period(Group("a", [Row()], quota_cores=3), cores=4)) == {"a": 80}


def test_a_workload_is_entitled_to_no_more_cores_than_its_vcpus_may_use() -> None:
    # 320; by share each would get 160, but a may use core 0 only: b gets the other 240
    narrow = [Row(allowed=[0])] * 4
    assert entitled(period(Group("a", narrow), Group("b", EIGHT), cores=4)) == {"a": 80, "b": 240}


def test_cores_that_some_vcpu_may_use_count_once_and_those_that_are_not_ours_not_at_all() -> None:
    # cores 0 and 1, and 7, which is not ours
    rows = [Row(allowed=[0, 7]), Row(allowed=[0, 1]), Row(allowed=[1, 7])]
    assert entitled(period(Group("a", rows), cores=4)) == {"a": 160}


def test_slices_follow_the_weights() -> None:
    # entitlement 2 × 80 = 160; weights 512 + 1024 + 1536 + 1024 = 4096 → 20, 40, 60, 40
    made = period(Group("a", [Row(weight=weight) for weight in (512, 1024, 1536, 1024)]))
    assert slices(made, 0, 4) == [20, 40, 60, 40]


def test_a_slice_is_at_most_one_period_and_the_siblings_do_not_get_the_rest() -> None:
    # 160 × 3000/4000 = 120 → 80;  160 × 500/4000 = 20
    made = period(Group("a", [Row(weight=weight) for weight in (3000, 500, 500)]))
    assert slices(made, 0, 3) == [80, 20, 20]


def test_a_workload_without_weights_splits_evenly() -> None:
    assert slices(period(Group("a", [Row(weight=None)] * 4)), 0, 4) == [40, 40, 40, 40]


def test_a_vcpu_without_a_weight_counts_as_neutral_among_those_that_have_one() -> None:
    # 1024 (no knob) + 3072 = 4096 → 40 and 120, which is cut to 80
    assert slices(period(Group("a", [Row(weight=None), Row(weight=3072)])), 0, 2) == [40, 80]


def test_slices_under_other_weights_can_be_asked_for() -> None:
    made = period(Group("a", [Row()] * 4))
    found = slices_ns(made, {vcpu_id(0, 0): 1536, vcpu_id(0, 1): 512})
    assert [found[vcpu_id(0, row)] / MS for row in range(4)] == [60, 20, 40, 40]


def test_nobody_splits_nothing() -> None:
    assert split_ns(100, [], 80) == []


@pytest.mark.parametrize(
    ("consumed_ms", "slice_ms", "exhausted"),
    [
        # slice   tenth   tolerance   from
        (76.0, 80, True),  # 80   8   4 (the tick)   76
        (75.9, 80, False),
        (36.0, 40, True),  # 40   4   4 (both)   36
        (35.9, 40, False),
        (18.0, 20, True),  # 20   2   2 (a tenth)   18
        (17.9, 20, False),
        (25.0, 20, True),  # more than the slice: others left time over
        (0.0, 20, False),
    ],
)
def test_a_slice_is_exhausted_up_to_one_tick_or_a_tenth_of_it(
    consumed_ms: float, slice_ms: float, exhausted: bool
) -> None:
    assert is_exhausted(round(consumed_ms * MS), round(slice_ms * MS)) is exhausted


def test_a_shorter_tick_judges_more_strictly() -> None:
    assert not is_exhausted(78 * MS, 80 * MS, tick_ns=MS)
    assert is_exhausted(79 * MS, 80 * MS, tick_ns=MS)


def test_a_standing_has_one_row_a_vcpu_and_tells_who_slept_and_who_is_exhausted() -> None:
    made = period(
        Group("z", [Row()]), Group("a", [Row(40, READY), Row(), Row(9, READY), Row(new=True)], share=4096)
    )
    # cores 160; z gets 32 of its 80 by share, a the other 128: 32 each
    standing = standings(made)[1]
    assert standing.ids == [vcpu_id(1, row) for row in range(4)]
    assert standing.entitlement_ns == 128 * MS
    assert list(standing.slices_ns) == [32 * MS] * 4
    assert list(standing.active) == [0, 2]
    assert standing.exhausted == {0}
    assert standing.usage[3] is None


def test_a_vcpu_that_is_listed_but_gone_has_no_row_and_no_slice() -> None:
    made = period(Group("a", [Row()] * 3), Group("b", [Row()]), cores=4)
    gone = Period(
        made.index,
        made.length_ns,
        made.topology,
        made.workloads,
        made.usage,
        {vcpu: knobs for vcpu, knobs in made.knobs.items() if vcpu != vcpu_id(0, 1)},
        made.core_of,
    )
    assert [standing.ids for standing in standings(gone)] == [[vcpu_id(0, 0), vcpu_id(0, 2)], [vcpu_id(1, 0)]]
    assert vcpu_id(0, 1) not in slices_ns(gone)
