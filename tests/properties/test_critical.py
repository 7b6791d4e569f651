"""What holds for the policy `critical` whatever workloads do, and however they try to please it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_core import to_json

from dasec.critical import Critical, CriticalParameters, CriticalState, Fairness
from dasec.critical.late import Claimant, behind_ns
from dasec.critical.latency import LONGEST_NS
from dasec.critical.memory import Counting, Memory
from dasec.critical.scores import FULL, judge
from dasec.critical.weights import PAY_DIVISOR, Claims, divide
from dasec.model import Core, Knobs, Period, PolicyState, VcpuId
from dasec.plan import plan
from dasec.tsa import MAX_WEIGHT_SPAN

from ..builders import core_set, period, vcpu_id
from .invariants import after, check_changes
from .strategies import groups, names, shuffled

POLICIES = st.builds(
    Critical,
    st.builds(
        CriticalParameters,
        weight_ratio=st.integers(2, 32),
        nested_weight_ratio=st.integers(2, 32),
        decay_percent=st.sampled_from([50, 85, 95]),
        deadband_percent=st.sampled_from([0, 4, 20, 25]),
        guess=st.booleans(),
        yield_latency_percent=st.sampled_from([100, 125, 1000]),
        fairness=st.sampled_from(Fairness),
    ),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Period]:
    """Up to nine periods in which vCPUs come, go, and do anything."""
    cores = draw(st.integers(1, 3))
    used = names[: draw(st.integers(1, 3))]
    tables = draw(st.lists(st.tuples(*[groups(name, cores) for name in used]), min_size=1, max_size=3))
    order = draw(st.lists(st.integers(0, len(tables) - 1), min_size=4, max_size=9))
    return [period(*tables[which], cores=cores, index=index) for index, which in enumerate(order)]


def lived(policy: Critical, history: list[Period]) -> list[tuple[Period, PolicyState]]:
    """Every period with the knobs that the plans before it left, and the state before it."""
    state, knobs = policy.initial_state(), dict[VcpuId, Knobs]()
    steps = []
    for drawn in history:
        made = replace(
            drawn,
            knobs={
                vcpu: there._replace(
                    weight=knobs.get(vcpu, there).weight,
                    rescheduling_latency_ns=knobs.get(vcpu, there).rescheduling_latency_ns,
                )
                for vcpu, there in drawn.knobs.items()
            },
        )
        steps.append((made, state))
        decision = policy.decide(made, state)
        knobs |= after(made, plan(made, decision)).knobs
        state = decision.state
    return steps


@settings(max_examples=40)
@given(policy=POLICIES, history=histories())
def test_every_plan_is_carried_out_and_only_for_who_is_there(policy: Critical, history: list[Period]) -> None:
    for made, state in lived(policy, history):
        decision = policy.decide(made, state)
        planned = plan(made, decision)
        assert planned.violations == ()
        check_changes(made, decision, planned)
        assert decision.knobs.keys() <= made.knobs.keys()
        remembered = decision.state
        assert isinstance(remembered, CriticalState)
        assert {vcpu for vcpu, _ in remembered.neutral} <= made.knobs.keys()
        assert {memory.vcpu for memory in remembered.memories} <= made.usage.keys()
        assert len(remembered.excess) == len(remembered.memories)


@settings(max_examples=40)
@given(policy=POLICIES, history=histories())
def test_weights_stay_between_an_eighth_and_eight_times_neutral(
    policy: Critical, history: list[Period]
) -> None:
    for made, state in lived(policy, history):
        decision = policy.decide(made, state)
        assert isinstance(decision.state, CriticalState)
        neutral = dict(decision.state.neutral)
        for vcpu, knobs in decision.knobs.items():
            if knobs.weight is not None:
                assert neutral[vcpu] <= knobs.weight * MAX_WEIGHT_SPAN
                assert knobs.weight <= neutral[vcpu] * MAX_WEIGHT_SPAN


@settings(max_examples=40)
@given(policy=POLICIES, history=histories())
def test_nobody_rises_above_neutral_but_by_demand_or_below_a_group_of_its_own(
    policy: Critical, history: list[Period]
) -> None:
    if policy.parameters.fairness is Fairness.DEMAND:
        policy = replace(policy, parameters=replace(policy.parameters, fairness=Fairness.STRICT))
    for made, state in lived(policy, history):
        decision = policy.decide(made, state)
        assert isinstance(decision.state, CriticalState)
        neutral = dict(decision.state.neutral)
        flat = {vcpu.id for workload in made.workloads if not workload.nested for vcpu in workload.vcpus}
        for vcpu, knobs in decision.knobs.items():
            if knobs.weight is not None and vcpu in flat:
                assert knobs.weight <= neutral[vcpu]


@settings(max_examples=40)
@given(policy=POLICIES, history=histories())
def test_nobody_may_start_sooner_than_it_was_found_and_only_who_yields_later(
    policy: Critical, history: list[Period]
) -> None:
    percent = policy.parameters.yield_latency_percent
    found: dict[VcpuId, int | None] = {}
    for made, state in lived(policy, history):
        found = {vcpu: found.get(vcpu, knobs.rescheduling_latency_ns) for vcpu, knobs in made.knobs.items()}
        decision = policy.decide(made, state)
        assert isinstance(decision.state, CriticalState)
        yielding = dict(decision.state.latencies)
        for vcpu, knobs in after(made, plan(made, decision)).knobs.items():
            was_ns, now_ns = found[vcpu], knobs.rescheduling_latency_ns
            assert yielding.get(vcpu, was_ns) == was_ns
            if was_ns and vcpu in yielding:
                assert now_ns == min(was_ns * percent // 100, max(was_ns, LONGEST_NS))
            else:
                assert now_ns == was_ns


@settings(max_examples=40)
@given(policy=POLICIES, history=histories(), data=st.data())
def test_the_order_of_workloads_and_vcpus_does_not_matter(
    policy: Critical, history: list[Period], data: st.DataObject
) -> None:
    made, state = lived(policy, history)[-1]
    assert isinstance(state, CriticalState)
    one, other = policy.decide(made, state), policy.decide(data.draw(shuffled(made)), state)
    assert one.knobs == other.knobs
    assert set(one.reasons) == set(other.reasons)
    assert isinstance(one.state, CriticalState)
    assert isinstance(other.state, CriticalState)
    assert set(zip(one.state.memories, one.state.excess, strict=True)) == set(
        zip(other.state.memories, other.state.excess, strict=True)
    )
    assert set(one.state.balances) == set(other.state.balances)


@settings(max_examples=40)
@given(policy=POLICIES, history=histories())
def test_a_state_read_back_from_a_record_decides_the_same(policy: Critical, history: list[Period]) -> None:
    made, state = lived(policy, history)[-1]
    read = TypeAdapter(CriticalState).validate_json(to_json(state))
    assert read == state
    assert policy.decide(made, read) == policy.decide(made, state)


numbers = st.integers(1, 10**10)


claimants = st.builds(
    Claimant,
    st.sampled_from(names),
    st.sampled_from([1024, 3072, 2, 2**18]) | st.integers(1, 10**4),
    st.sampled_from([1024, 1, 2**18]) | st.integers(1, 10**4),
    st.integers(0, 40),
    st.integers(0, 40) | st.just(40),
)


@given(st.dictionaries(st.sampled_from([core_set(0), core_set(0, 1)]), st.lists(claimants)))
@example({core_set(0): [Claimant("a", 1024, 1024, 40, 40), Claimant("b", 3072, 1024, 40, 40)]})
def test_whatever_weights_are_in_force_nobody_is_behind_by_more_than_there_was(
    places: dict[frozenset[Core], list[Claimant]],
) -> None:
    assert all(0 <= ns <= 3 * 80 for ns in behind_ns(80, places).values())


@st.composite
def claims(draw: st.DrawFn) -> Claims:
    count = draw(st.integers(1, 12))
    return Claims(
        draw(st.lists(st.integers(8, 5000), min_size=count, max_size=count)),
        draw(st.lists(st.integers(0, 10**9), min_size=count, max_size=count)),
        draw(st.lists(st.integers(0, FULL), min_size=count, max_size=count)),
    )


@given(made=claims(), owed=st.integers(-(10**15), 10**15), ratio=st.integers(2, 7))
def test_the_sum_by_demand_is_what_is_due(made: Claims, owed: int, ratio: int) -> None:
    # no weight is rounded up, but for those that the bounds cut: at 7 : 1 none is below 1/8 unless it pays
    weights = divide(made, ratio, owed)
    fair = made.fair()
    due = fair - max(-(fair // PAY_DIVISOR), min(fair // PAY_DIVISOR, owed))
    got = sum(weight * ns for weight, ns in zip(weights, made.demand_ns, strict=True))
    at_a_bound = any(
        weight * MAX_WEIGHT_SPAN < neutral + MAX_WEIGHT_SPAN or weight == neutral * MAX_WEIGHT_SPAN
        for weight, neutral in zip(weights, made.neutral, strict=True)
    )
    if not at_a_bound:
        assert due - sum(made.demand_ns) <= got <= due


@given(made=claims(), owed=st.integers(-(10**15), 10**15), ratio=st.integers(2, 8))
def test_a_higher_score_never_gets_less_of_its_neutral_weight(made: Claims, owed: int, ratio: int) -> None:
    weights = divide(made, ratio, owed)
    ordered = sorted(zip(made.scores, weights, made.neutral, strict=True))
    for (_, less, less_neutral), (_, more, more_neutral) in zip(ordered, ordered[1:], strict=False):
        assert (less - 1) * more_neutral <= (more + 1) * less_neutral


@given(neutral=st.integers(8, 5000), demand_ns=st.integers(0, 10**9), score=st.integers(0, FULL))
def test_one_alone_and_equals_keep_their_neutral_weight(neutral: int, demand_ns: int, score: int) -> None:
    assert divide(Claims([neutral] * 3, [demand_ns] * 3, [score] * 3), 7) == [neutral] * 3
    assert divide(Claims([neutral], [demand_ns], [score]), 7) == [neutral]


@st.composite
def remembered(draw: st.DrawFn) -> list[Memory]:
    """One workload's memories: any counts, any edges."""
    count = draw(st.integers(1, 6))
    ids = [vcpu_id(0, row) for row in range(count)]
    made = []
    for vcpu in ids:
        run_ns = draw(numbers)
        busy_ns = run_ns + draw(numbers)
        edges = draw(st.dictionaries(st.sampled_from(ids), st.integers(20, 10**5), max_size=3))
        edges.pop(vcpu, None)
        made.append(
            Memory(
                vcpu,
                run_ns,
                busy_ns,
                draw(st.integers(0, busy_ns)),
                bursts := draw(st.integers(0, 10**5)),
                draw(st.integers(0, bursts)),
                draw(st.integers(0, 10**5)),
                tuple(sorted(edges.items())),
                4,
                draw(st.sampled_from(Counting)),
            )
        )
    return made


@given(made=remembered(), factor=st.integers(2, 50))
def test_times_on_another_scale_change_no_score(made: list[Memory], factor: int) -> None:
    def scaled(memory: Memory) -> Memory:
        return memory._replace(
            run_ns=memory.run_ns * factor,
            busy_ns=memory.busy_ns * factor,
            chain_ns=memory.chain_ns * factor,
        )

    nothing = [0] * len(made)
    one = judge(made, nothing, CriticalParameters(burst_ns=2_000_000))
    other = judge(list(map(scaled, made)), nothing, CriticalParameters(burst_ns=2_000_000 * factor))
    assert one == other
    assert all(0 <= score <= FULL for score in one.scores)


@given(made=remembered())
def test_siblings_that_nobody_waits_for_change_no_rank(made: list[Memory]) -> None:
    sleeper = made[0]._replace(vcpu=vcpu_id(3, 3), wakers=(), chain_ns=0, led=0)
    alone = judge(made, [0] * len(made), CriticalParameters())
    beside = judge([*made, sleeper], [0] * (len(made) + 1), CriticalParameters())
    assert beside.ranks[:-1] == alone.ranks
    assert beside.ranks[-1] == 0
