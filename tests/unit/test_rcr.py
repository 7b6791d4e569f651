"""RCR from tables worked by hand. `a0` is row 0 of workload a. Slices in ms, latencies in µs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from dasec.entitlement import standings
from dasec.model import Core, Knob, Period, VcpuId
from dasec.rcr import RcrParameters, Resolution, resolve

from ..builders import READY, Group, Row, period, vcpu_id

DEFAULT = RcrParameters()
ONE_SWAP = RcrParameters(max_slice_swaps=1)


def resolved(
    made: Period,
    parameters: RcrParameters = DEFAULT,
    moved: tuple[tuple[VcpuId, int], ...] = (),
    weights: Mapping[VcpuId, int] | None = None,
    latencies_ns: Mapping[VcpuId, int] | None = None,
) -> Resolution:
    return resolve(made, standings(made), weights or {}, latencies_ns or {}, moved, parameters)


def pins(
    made: Period, parameters: RcrParameters = DEFAULT, moved: tuple[tuple[VcpuId, int], ...] = ()
) -> dict[str, int]:
    """The new cores by name: a0, b1, …"""
    return named(resolved(made, parameters, moved))


def named(resolution: Resolution) -> dict[str, int]:
    return {
        f"{'abcdef'[vcpu.pid // 1000 - 1]}{vcpu.tid % 1000 - 1}": core
        for vcpu, core in resolution.pins.items()
    }


def busy(core: int, weight: int = 1024, **more: object) -> Row:
    return replace(Row(1, weight=weight, core=core), **more)  # type: ignore[arg-type]


def heavy_and_light(**more: object) -> list[Row]:
    """With an entitlement of 80: a slice of 60 on core 0, and one of 20 on core 1."""
    return [busy(0, 1536, **more), busy(1, 512, **more)]


# Slices


def test_of_equal_slices_the_lower_id_changes_places_whether_they_are_above_or_below_the_best() -> None:
    # core 0: three of 40; core 1: four, and best were 40 − 24 / 2 = 28, or, below, 40 − 80 / 2 = 0
    three = Group("a", [busy(0)] * 3, quota_cores=1.5)
    for quota_cores, sum_ms in ((1.2, 96), (0.5, 40)):
        made = period(three, Group("b", [busy(1)] * 4, quota_cores=quota_cores), cores=4)
        assert sum(standings(made)[1].slices_ns) == sum_ms * 1_000_000
        assert pins(made, ONE_SWAP) == {"a0": 1, "b0": 0}


def test_the_pair_that_leaves_the_smallest_difference_changes_places() -> None:
    # entitlement 160 / 2 = 80 each      core 0            core 1           difference
    # slices                             a0 60, b0 60      a1 20, b1 20     120 − 40 = 80
    # a0 ↔ a1 moves 60 − 20 = 40         a1 20, b0 60      a0 60, b1 20      80 − 80 = 0
    made = period(Group("a", heavy_and_light()), Group("b", heavy_and_light()))
    assert pins(made) == {"a0": 1, "a1": 0}


def test_one_swap_is_all_if_it_suffices_and_a_second_follows_if_not() -> None:
    # one workload, entitlement 160, slice = weight / 10
    # core 0: 50 30 20 = 100      core 1: 10 25 25 = 60      difference 40: move 20
    #   30 ↔ 10 moves 20 exactly
    rows = [busy(0, 500), busy(0, 300), busy(0, 200), busy(1, 100), busy(1, 250), busy(1, 250)]
    assert pins(period(Group("a", rows))) == {"a1": 1, "a3": 0}
    # core 0: 30 30 30 = 90      core 1: 24 24 22 = 70      difference 20: move 10
    #   best is 30 ↔ 22, moving 8: 82 and 78, no more than 10 % apart
    rows = [*[busy(0, 300)] * 3, busy(1, 240), busy(1, 240), busy(1, 220)]
    assert pins(period(Group("a", rows))) == {"a0": 1, "a5": 0}
    # core 0: 4 × 25 = 100       core 1: 4 × 15 = 60         difference 40: move 20
    #   25 ↔ 15 moves 10: 90 and 70; still more than 10 % apart, and again: 80 and 80
    rows = [*[busy(0, 250)] * 4, *[busy(1, 150)] * 4]
    assert pins(period(Group("a", rows))) == {"a0": 1, "a4": 0, "a1": 1, "a5": 0}
    assert pins(period(Group("a", rows)), ONE_SWAP) == {"a0": 1, "a4": 0}


@pytest.mark.parametrize(
    ("weights", "swapped"),
    [
        # 2 × 84 ms = 168, weights add up to 1680: slice = weight / 10
        ((440, 440, 400, 400), False),  # 88.0 : 80.0 is 10 % exactly; 44.0 ↔ 40.0 would leave 84 and 84
        ((441, 440, 400, 399), True),  # 88.1 : 79.9 is more; 44.1 ↔ 40.0 leaves 84 and 84
    ],
)
def test_more_than_ten_percent_is_too_much(weights: Sequence[int], swapped: bool) -> None:
    rows = [busy(core, weight) for core, weight in zip((0, 0, 1, 1), weights, strict=True)]
    assert bool(pins(period(Group("a", rows), length_ms=84))) is swapped


def test_a_swap_must_shrink_the_difference_by_a_tenth() -> None:
    # 168 as above: 48.1 + 40.0 = 88.1 and 40.0 + 39.9 = 79.9, difference 8.2
    # 48.1 ↔ 40.0 moves 8.1 and leaves 8.0 the other way; 40.0 ↔ 39.9 leaves 8.0, too; a tenth less is 7.38
    rows = [busy(0, 481), busy(0, 400), busy(1, 400), busy(1, 399)]
    made = period(Group("a", rows), length_ms=84)
    assert pins(made) == {}
    assert pins(made, RcrParameters(min_gain_percent=1)) == {"a1": 1, "a3": 0}


def test_the_slices_after_tsa_count() -> None:
    made = period(Group("a", [busy(0), busy(0), busy(1), busy(1)]))
    assert pins(made) == {}
    # 160 × 1126/4096 = 43.98, twice on core 0; 36.02, twice on core 1: 88 : 72
    after = {vcpu_id(0, 0): 1126, vcpu_id(0, 1): 1126, vcpu_id(0, 2): 922, vcpu_id(0, 3): 922}
    assert named(resolved(made, weights=after)) == {"a0": 1, "a2": 0}


def test_a_core_without_any_vcpu_takes_no_part() -> None:
    # cores 2 and 3 have nobody; cores 0 and 1 are even. All four cores together: 320, limit 2 × 80 each
    made = period(Group("a", [busy(0), busy(1)]), Group("b", [busy(0), busy(1)]), cores=4)
    assert pins(made) == {}


def test_of_cores_that_are_equally_full_the_first_is_taken() -> None:
    # 320 / 4 = 80 each; sums 120, 120, 40, 40 on one node
    low, high = [busy(0, 1536), busy(2, 512)], [busy(1, 1536), busy(3, 512)]
    groups = [Group("a", low), Group("b", low), Group("c", high), Group("d", high)]
    assert pins(period(*groups, cores=4)) == {"a0": 2, "a1": 0}


def test_nobody_moves_to_a_sibling_while_there_is_a_core_without_one() -> None:
    # core 0: a0 60, b0 60; core 1: a1 20, b1 20; core 2: c0 40, c1 40
    # a1 cannot be moved, so a0 may only change places with b1, and would join a1 on core 1
    a0, a1 = heavy_and_light()
    a, b, c = [a0, replace(a1, movable=False)], heavy_and_light(), [busy(2), busy(2)]
    assert pins(period(Group("a", a), Group("b", b), Group("c", c), cores=3)) == {"b0": 1, "b1": 0}


def test_even_the_core_that_it_leaves_counts_as_one_without_a_sibling() -> None:
    # the same without core 2: if a0 goes to a1 on core 1, core 0 is without an a
    a0, a1 = heavy_and_light()
    made = period(Group("a", [a0, replace(a1, movable=False)]), Group("b", heavy_and_light()))
    assert pins(made) == {"b0": 1, "b1": 0}


def test_siblings_meet_where_there_is_no_core_without_one() -> None:
    # a and b have two on each core; slices of 160 / 2 = 80: a0 30, a1 30, a2 10, a3 10; b likewise
    rows = [busy(0, 300), busy(0, 300), busy(1, 100), busy(1, 100)]
    still = [replace(row, movable=False) for row in rows]
    # only a0 can go, and only b3 can come: 120 : 40 becomes 100 : 60
    a = [rows[0], *still[1:]]
    b = [*still[:3], rows[3]]
    assert pins(period(Group("a", a), Group("b", b))) == {"a0": 1, "b3": 0}


def test_a_core_that_the_vcpu_may_not_use_is_no_way_out() -> None:
    # 80 each; core 0: a0 30, a1 30, b0 60 = 120; core 1: a2 20, c0 20 = 40; core 2: b1 20, c1 60, and no a
    a = [busy(0, 768, allowed=[0, 1]), busy(0, 768, movable=False), busy(1, 512, movable=False)]
    b = [busy(0, 1536, movable=False), busy(2, 512)]
    c = [busy(1, 512), busy(2, 1536)]
    # a0 ↔ c0 moves 10; a0 joins a2, because it may not go to core 2
    assert pins(period(Group("a", a), Group("b", b), Group("c", c), cores=3)) == {"a0": 1, "c0": 0}
    roaming = [replace(a[0], allowed=[0, 1, 2]), *a[1:]]
    assert pins(period(Group("a", roaming), Group("b", b), Group("c", c), cores=3)) == {}


@pytest.mark.parametrize(
    "a0",
    [
        pytest.param({"movable": False}, id="no affinity knob"),
        pytest.param({"new": True}, id="just come"),
        pytest.param({"allowed": [0]}, id="not allowed on the other core"),
    ],
)
def test_who_cannot_be_moved_stays(a0: dict[str, object]) -> None:
    (heavy, light) = heavy_and_light()
    made = period(
        Group("a", [replace(heavy, **a0), light]),  # type: ignore[arg-type]
        Group("b", [replace(row, movable=False) for row in heavy_and_light()]),
    )
    assert pins(made) == {}


def test_the_one_that_would_come_must_be_allowed_too() -> None:
    (heavy, light) = heavy_and_light()
    a = [heavy, replace(light, allowed=[1])]
    b = [replace(row, movable=False) for row in heavy_and_light()]
    assert pins(period(Group("a", a), Group("b", b))) == {}


def test_nobody_changes_the_numa_node_unless_asked() -> None:
    # 320 / 4 = 80 each, slices 60 and 20. Node 0: cores 0 and 1, 120 each; node 1: cores 2 and 3, 40 each
    low, high = [busy(0, 1536), busy(2, 512)], [busy(1, 1536), busy(3, 512)]
    groups = [Group("a", low), Group("b", low), Group("c", high), Group("d", high)]
    made = period(*groups, cores=4, nodes=(0, 0, 1, 1))
    assert pins(made) == {}
    assert pins(made, RcrParameters(across_nodes=True)) == {"a0": 2, "a1": 0}


def test_a_small_core_and_a_large_one_do_not_exchange_vcpus() -> None:
    made = period(Group("a", heavy_and_light()), Group("b", heavy_and_light()))
    assert pins(made) != {}
    unlike = replace(made.topology, capacity_of={Core(0): 1024, Core(1): 446})
    assert pins(replace(made, topology=unlike)) == {}


def test_smt_siblings_do_not_exchange_vcpus_but_each_does_with_another_core() -> None:
    made = period(Group("a", heavy_and_light()), Group("b", heavy_and_light()), cores=2)
    siblings = replace(made.topology, whole_of={Core(0): 0, Core(1): 0})
    assert pins(replace(made, topology=siblings)) == {}
    # 320 / 4 = 80 each, slices 60 and 20: core 0 has 120, its sibling 40, and core 2, which is whole, 60
    groups = [Group(name, heavy_and_light()) for name in "ab"]
    made = period(*groups, Group("c", [busy(2, 1536), busy(3, 512)]), cores=4)
    siblings = replace(made.topology, whole_of={Core(0): 0, Core(1): 0, Core(2): 2, Core(3): 2})
    moved = pins(replace(made, topology=siblings))
    assert moved
    assert all(core in (2, 3) for name, core in moved.items() if name[0] in "ab")


def test_every_node_is_balanced_on_its_own() -> None:
    # the first test twice: cores 0 and 1 on node 0, cores 2 and 3 on node 1; 320 / 4 = 80 each
    def on(first: int) -> list[Row]:
        return [replace(row, core=row.core + first) for row in heavy_and_light()]

    made = period(
        Group("a", on(0)),
        Group("b", on(0)),
        Group("c", on(2)),
        Group("d", on(2)),
        cores=4,
        nodes=(0, 0, 1, 1),
    )
    assert pins(made) == {"a0": 1, "a1": 0, "c0": 3, "c1": 2}


@pytest.mark.parametrize(("index", "swapped"), [(100, True), (112, False), (113, True)])
def test_who_was_moved_rests_for_twelve_periods(index: int, swapped: bool) -> None:
    a = heavy_and_light()
    b = [replace(row, movable=False) for row in a]
    made = period(Group("a", a), Group("b", b), index=index)
    moved = ((vcpu_id(0, 1), 100),) if index > 100 else ()
    assert bool(pins(made, moved=moved)) is swapped


def test_who_is_moved_is_remembered_with_the_period() -> None:
    made = period(Group("a", heavy_and_light()), Group("b", heavy_and_light()), index=100)
    assert resolved(made).moved == ((vcpu_id(0, 0), 100), (vcpu_id(0, 1), 100))


def test_the_memory_drops_who_is_gone_and_who_has_arrived_and_rested() -> None:
    made = period(Group("a", [busy(0, pin=0), busy(1, pin=0), busy(1), busy(0)]), index=100)
    arrived, on_its_way, resting, gone = vcpu_id(0, 0), vcpu_id(0, 1), vcpu_id(0, 2), vcpu_id(5, 5)
    moved = ((arrived, 80), (on_its_way, 80), (resting, 88), (gone, 99))
    assert resolved(made, moved=moved).moved == ((on_its_way, 80), (resting, 88))


def test_a_sleeper_that_was_moved_counts_where_it_is_pinned() -> None:
    # a0 was last on core 0, but is pinned to core 1 since period 50, and sleeps on: 80 : 80, not 120 : 40
    heavy, light = heavy_and_light()
    made = period(
        Group("a", [replace(heavy, pin=1), replace(light, pin=0)]), Group("b", heavy_and_light()), index=100
    )
    moved = ((vcpu_id(0, 0), 50), (vcpu_id(0, 1), 50))
    assert pins(made, moved=moved) == {}


# Latencies: even slices of 20 ms; rows 0 and 1 of each workload on core 0, rows 2 and 3 on core 1


def latencies(
    conflicts: Sequence[int], a_us: Sequence[float | None] = (1400, 1400, 12000, 12000), **b0: object
) -> Period:
    """Two workloads of four with the same latencies; `conflicts` of a0 … a3, b0 … b3."""
    rows = [
        Row(5, READY, core=row // 2 % 2, latency_us=a_us[row % 4], conflicts=conflicts[row])
        for row in range(8)
    ]
    rows[4] = replace(rows[4], **b0)  # type: ignore[arg-type]
    return period(Group("a", rows[:4]), Group("b", rows[4:]))


def test_half_of_the_low_vcpus_with_conflicts_change_places_with_as_many_high_ones() -> None:
    # core 0: low a0 5, a1 1, b0 3, b1 0 = 9 conflicts; core 1: none. Half of four, most first: a0, b0
    # core 1: high a2 a3 b2 b3, equally high, so by id: a0 ↔ a2, b0 ↔ a3
    made = latencies([5, 1, 0, 0, 3, 0, 0, 0])
    assert pins(made) == {"a0": 1, "a2": 0, "b0": 1, "a3": 0}


@pytest.mark.parametrize(
    ("there", "here", "swapped"),
    [
        (9, 4, True),
        (8, 4, False),  # not more than twice
        (4, 0, True),
        (3, 0, False),  # too few to matter
    ],
)
def test_the_most_conflicts_must_be_more_than_twice_the_fewest_and_not_too_few(
    there: int, here: int, swapped: bool
) -> None:
    # a0, a1, b0, b1 on core 0 and a2 on core 1 are low; five of eight, so the median is the smallest value
    made = latencies([there, 0, here, 0, 0, 0, 0, 0], (1400, 1400, 1400, 12000), latency_us=1400)
    assert bool(pins(made)) is swapped


def test_conflicts_of_high_vcpus_do_not_count() -> None:
    assert pins(latencies([0, 0, 9, 9, 0, 0, 0, 0])) == {}
    assert pins(latencies([2, 1, 9, 9, 0, 0, 0, 0])) == {}
    # b0 is high, too: core 0 has the two conflicts of a0 and a1, not eleven
    assert pins(latencies([1, 1, 0, 0, 9, 0, 0, 0], latency_us=12000)) == {}
    # core 1 has none, not five, so the nine of core 0 are more than twice as many
    assert pins(latencies([9, 0, 5, 0, 0, 0, 0, 0])) == {"a0": 1, "a2": 0, "a1": 1, "a3": 0}


def test_half_of_three_is_one_and_half_of_one_is_nobody() -> None:
    # b0 is high: core 0 has the low a0, a1, b1
    three = latencies([9, 1, 0, 0, 0, 0, 0, 0], latency_us=12000)
    assert pins(three) == {"a0": 1, "a2": 0}
    # only a0 is low; it is below the median of the others
    one = latencies([9, 0, 0, 0, 0, 0, 0, 0], (None, 12000, 12000, 12000), latency_us=12000)
    alone = {vcpu_id(0, 0): 1_400_000}
    assert named(resolved(one, latencies_ns=alone)) == {}


def test_the_highest_come_first() -> None:
    # core 1: a2 8000, a3 12000, b2 8000, b3 12000; the median of the eight is 8000
    made = latencies([5, 1, 0, 0, 3, 0, 0, 0], (1400, 1400, 8000, 12000))
    assert pins(made) == {"a0": 1, "a3": 0, "b0": 1, "b3": 0}


def test_no_more_are_swapped_than_there_are_high_ones() -> None:
    # a2, a3, b2 cannot be moved
    made = latencies([5, 1, 0, 0, 3, 0, 0, 0])
    knobs = dict(made.knobs)
    for vcpu in (vcpu_id(0, 2), vcpu_id(0, 3), vcpu_id(1, 2)):
        knobs[vcpu] = knobs[vcpu]._replace(affinity=None)
    assert pins(replace(made, knobs=knobs)) == {"a0": 1, "b3": 0}


def test_a_low_one_is_no_partner_for_a_low_one() -> None:
    # only b0 is high, and it is on core 0 itself
    assert pins(latencies([9, 1, 0, 0, 0, 0, 0, 0], (1400, 1400, 1400, 1400), latency_us=12000)) == {}


def test_where_all_have_the_same_latency_nobody_is_low() -> None:
    assert pins(latencies([9, 9, 0, 0, 9, 9, 0, 0], (1400, 1400, 1400, 1400))) == {}


def test_a_vcpu_without_a_latency_is_neither_low_nor_high() -> None:
    made = latencies([5, 5, 0, 0, 3, 0, 0, 0], (1400, 1400, None, None))
    assert pins(made) == {}


def test_the_latencies_after_rla_count() -> None:
    made = latencies([5, 1, 0, 0, 3, 0, 0, 0], (4000, 4000, 4000, 4000))
    after = {vcpu_id(group, row): 1_400_000 for group in (0, 1) for row in (0, 1)}
    assert named(resolved(made, latencies_ns=after)) == {"a0": 1, "a2": 0, "b0": 1, "a3": 0}


def test_the_reasons_of_a_swap_stand_side_by_side() -> None:
    one, other, *_ = resolved(latencies([5, 1, 0, 0, 3, 0, 0, 0])).reasons
    inputs = (("core_from", 0), ("core_to", 1), ("conflicts", 9), ("conflicts_there", 0))
    assert one == (vcpu_id(0, 0), Knob.AFFINITY, "rcr.latencies", inputs)
    assert other == (vcpu_id(0, 2), Knob.AFFINITY, "rcr.latencies", inputs)


def test_a_vcpu_on_a_core_that_is_not_ours_is_nobodys_business() -> None:
    made = period(Group("a", heavy_and_light()), Group("b", heavy_and_light()))
    elsewhere = {**made.core_of, vcpu_id(0, 0): Core(7)}
    # core 0: b0 60; core 1: a1 20, b1 20: b0 ↔ a1 would leave the same difference
    assert pins(replace(made, core_of=elsewhere)) == {}


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"slice_imbalance_percent": 0}, "rcr: slice_imbalance_percent is 0: give 1 to 10000"),
        ({"conflict_ratio": 0}, "rcr: conflict_ratio is 0"),
        ({"min_conflicts": 0}, "rcr: min_conflicts is 0"),
        ({"cooldown_periods": -1}, "rcr: cooldown_periods is -1: give 0 to 1000000"),
        ({"max_slice_swaps": 0}, "rcr: max_slice_swaps is 0"),
        ({"min_gain_percent": 0}, "rcr: min_gain_percent is 0"),
        ({"min_gain_percent": 101}, "rcr: min_gain_percent is 101: give 1 to 100"),
    ],
)
def test_settings_without_sense_are_refused(setting: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        RcrParameters(**setting)  # type: ignore[arg-type]
