"""What holds for every period that a host can report."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dasec import paper
from dasec.entitlement import entitlements_ns, limit_ns, slices_ns
from dasec.model import Decision, Knobs, Period, VcpuId
from dasec.paper import Dasec, DasecState
from dasec.plan import Plan, plan
from dasec.policies import POLICIES, Parameters, policy_named
from dasec.rcr import RcrParameters
from dasec.rla import RlaParameters
from dasec.tsa import TsaParameters, apportion

from .invariants import check_all, check_changes, check_weights
from .strategies import exact_periods, periods, periods_and_states, scaled, shuffled, times

DEFAULT = Parameters()
EAGER = Parameters((RcrParameters(min_conflicts=1, cooldown_periods=0, conflict_ratio=1, max_slice_swaps=4),))


@pytest.mark.parametrize("parameters", [DEFAULT, EAGER], ids=["default", "eager"])
@given(drawn=periods_and_states())
def test_what_dasec_decides_keeps_every_invariant(
    parameters: Parameters, drawn: tuple[Period, DasecState]
) -> None:
    made, state = drawn
    decision = paper.KIND.build(parameters).decide(made, state)
    planned = plan(made, decision)
    assert planned.violations == ()
    check_all(made, decision, planned, parameters)


@given(drawn=periods_and_states())
def test_the_same_period_gives_the_same_decision_and_is_not_changed_by_it(
    drawn: tuple[Period, DasecState],
) -> None:
    kept = copy.deepcopy(drawn)
    first, second = Dasec().decide(*drawn), Dasec().decide(*drawn)
    assert first == second
    assert plan(drawn[0], first) == plan(drawn[0], second)
    assert drawn == kept


@given(drawn=periods_and_states(), data=st.data())
def test_the_order_of_workloads_and_vcpus_does_not_matter(
    drawn: tuple[Period, DasecState], data: st.DataObject
) -> None:
    made, state = drawn
    one = paper.KIND.build(EAGER).decide(made, state)
    other = paper.KIND.build(EAGER).decide(data.draw(shuffled(made)), state)
    assert one.knobs == other.knobs
    assert set(one.reasons) == set(other.reasons)
    assert isinstance(one.state, DasecState)
    assert isinstance(other.state, DasecState)
    assert set(one.state.started) == set(other.state.started)
    assert set(one.state.moved) == set(other.state.moved)


@given(made=exact_periods(), factor=st.integers(2, 9))
def test_times_on_another_scale_change_no_decision_and_scale_the_latencies(made: Period, factor: int) -> None:
    def scaled_rules(by: int) -> Parameters:
        return Parameters(
            (
                TsaParameters(tick_ns=4_000_000 * by),
                RlaParameters(floor_ns=1_440_000 * by, ceiling_ns=12_600_000 * by, start_ns=3_600_000 * by),
                RcrParameters(min_conflicts=1),
            )
        )

    state = DasecState(started=tuple(made.knobs)[1:])
    one = paper.KIND.build(scaled_rules(1)).decide(made, state)
    other = paper.KIND.build(scaled_rules(factor)).decide(scaled(made, factor), state)
    assert other.knobs.keys() == one.knobs.keys()
    for vcpu, (weight, latency_ns, affinity) in one.knobs.items():
        found = other.knobs[vcpu]
        assert (found.weight, found.affinity) == (weight, affinity)
        # whole ns: what was rounded off before is as many times as large
        stretched_ns = times(latency_ns, factor)
        assert abs((found.rescheduling_latency_ns or 0) - (stretched_ns or 0)) < factor
    assert other.state == one.state
    assert [reason[:3] for reason in other.reasons] == [reason[:3] for reason in one.reasons]


@pytest.mark.parametrize("name", POLICIES)
@given(made=periods())
def test_every_policy_makes_a_plan_without_violations(name: str, made: Period) -> None:
    policy = policy_named(name, DEFAULT)
    decision = policy.decide(made, policy.initial_state())
    planned = plan(made, decision)
    assert planned.violations == ()
    check_changes(made, decision, planned)


@given(made=periods())
def test_planning_for_what_is_there_gives_an_empty_plan(made: Period) -> None:
    assert plan(made, Decision(made.knobs)) == Plan()


wishes = st.builds(
    Knobs,
    st.none() | st.integers(-5, 20000),
    st.none() | st.integers(-5, 20_000_000),
    st.none() | st.frozensets(st.integers(0, 6), max_size=3),
)


@given(made=periods(), data=st.data())
def test_whatever_is_wished_the_plan_breaks_no_invariant(made: Period, data: st.DataObject) -> None:
    wanted = data.draw(st.dictionaries(st.sampled_from([*made.knobs, VcpuId(1, 1, 1)]), wishes))
    planned = plan(made, Decision(wanted))
    explained = Plan(tuple(change._replace(rule="any") for change in planned.changes), planned.violations)
    check_changes(made, Decision(), explained)
    knobs = dict(made.knobs)
    for change in planned.changes:
        if change.knob.value == "weight":
            assert isinstance(change.new, int)
            knobs[change.vcpu] = knobs[change.vcpu]._replace(weight=change.new)
        elif isinstance(change.new, frozenset):
            allowed = {vcpu.id: vcpu.allowed for workload in made.workloads for vcpu in workload.vcpus}
            assert change.new
            assert change.new <= allowed[change.vcpu]
        else:
            assert change.new > 0
    check_weights(made, replace(made, knobs=knobs))


@given(made=periods())
def test_entitlements_fit_the_cores_and_the_limits_and_leave_nothing_that_is_wanted(made: Period) -> None:
    entitled = entitlements_ns(made)
    capacity = len(made.topology.cores) * made.length_ns
    limits = {
        workload.name: limit_ns(workload, made.length_ns, frozenset(made.topology.cores))
        for workload in made.workloads
    }
    assert all(0 < entitled[name] <= limit for name, limit in limits.items())
    assert sum(entitled.values()) <= capacity
    wanted = min(capacity, sum(limits.values()))
    assert sum(entitled.values()) > wanted - len(made.workloads)


@given(made=periods())
def test_slices_fit_the_period_and_the_entitlement(made: Period) -> None:
    slices, entitled = slices_ns(made), entitlements_ns(made)
    assert slices.keys() == made.knobs.keys()
    assert all(0 <= slice_ns <= made.length_ns for slice_ns in slices.values())
    for workload in made.workloads:
        assert sum(slices[vcpu.id] for vcpu in workload.vcpus) <= entitled[workload.name]


@given(
    weights=st.lists(st.integers(1, 5000), min_size=1, max_size=20),
    low=st.integers(1, 50),
    spread=st.integers(0, 300),
    place=st.floats(0, 1),
)
def test_apportion_is_exact_bounded_and_in_the_order_of_the_weights(
    weights: list[int], low: int, spread: int, place: float
) -> None:
    high = low + spread
    total = round((low + spread * place) * len(weights))
    total = min(max(total, low * len(weights)), high * len(weights))
    parts = apportion(weights, total, low, high)
    assert sum(parts) == total
    assert all(low <= part <= high for part in parts)
    ordered = sorted(zip(weights, parts, strict=True))
    assert all(
        one[1] <= other[1] + (one[0] == other[0]) for one, other in zip(ordered, ordered[1:], strict=False)
    )
