"""What the guard does with a policy that harms, that gains, that does neither, and that changes its mind."""

from __future__ import annotations

import itertools

import pytest

from dasec.critical import Critical
from dasec.guard import GuardParameters, GuardState, Verdict
from dasec.guard.judge import MOST_PAIRS
from dasec.guard.switch import NEUTRAL as LEFT_ALONE
from dasec.guard.switch import WITH, WITHOUT
from dasec.model import Decision
from dasec.paper import Dasec

from .world import NEUTRAL, World, batch

TWO_SECONDS = 25


def harms(factor: float = 3.0) -> World:
    return World(lambda _, acted: 1.5 * factor if acted else 1.5)


def rules(decision: Decision) -> set[str]:
    return {reason.rule for reason in decision.reasons}


def verdicts(world: World) -> dict[str, Verdict]:
    return {name: standing.verdict for name, standing in world.standings.items()}


@pytest.mark.parametrize("factor", [2, 3, 10])
@pytest.mark.parametrize("counted", [True, False])
def test_a_policy_that_harms_is_off_within_two_seconds_of_its_first_write(
    factor: float, counted: bool
) -> None:
    world = World(lambda _, acted: 1.5 * factor if acted else 1.5, counted=counted)
    world.run_until(world.in_force, 2)
    world.run(TWO_SECONDS - 1)
    assert verdicts(world) == {"a": Verdict.HARM, "b": Verdict.HARM}
    assert not world.in_force()


def test_then_every_knob_is_as_before_and_stays_so_until_the_next_try() -> None:
    world = harms()
    world.run(TWO_SECONDS)
    until = world.standings["a"].until
    while world.index < until:
        world.step()
        assert not world.in_force()


def test_the_verdict_says_by_how_much_and_its_writes_carry_the_numbers() -> None:
    world = harms(3.0)
    world.run(TWO_SECONDS)
    assert world.standings["a"].ratio == pytest.approx(3000, rel=0.05)
    assert world.standings["a"].pairs == 4
    (reason, *_) = [
        reason for _, decision in world.history for reason in decision.reasons if reason.rule == LEFT_ALONE
    ]
    assert dict(reason.inputs) == {"ratio": world.standings["a"].ratio, "pairs": 4}


def test_who_is_off_in_doubt_is_tried_again_sooner() -> None:
    world = World(lambda _, acted: 2.1 if acted else 2.0, parameters=GuardParameters(backoff_periods=48))
    world.run_until(lambda: verdicts(world).get("a") in (Verdict.HARM, Verdict.OTHERS), TWO_SECONDS + 4)
    standing = world.standings["a"]
    assert standing.pairs == MOST_PAIRS
    assert standing.until - standing.since == 12


def test_each_failure_doubles_the_time_to_the_next_try() -> None:
    world = World(lambda _, acted: 6 if acted else 1.5, parameters=GuardParameters(backoff_periods=50))
    waits = []
    for _ in range(3):
        world.run_until(lambda: verdicts(world).get("a") is Verdict.HARM, TWO_SECONDS + 1)
        standing = world.standings["a"]
        waits.append(standing.until - standing.since)
        world.run(waits[-1])
    assert waits == [50, 100, 200]


def test_a_policy_that_gains_passes_and_stays_in_force_but_for_seldom_windows() -> None:
    world = World(lambda _, acted: 1.5 if acted else 3.0)
    world.run(TWO_SECONDS)
    assert verdicts(world) == {"a": Verdict.FINE, "b": Verdict.FINE}
    off = 0
    for _ in range(3000):
        world.step()
        off += not world.in_force()
    assert verdicts(world) == {"a": Verdict.FINE, "b": Verdict.FINE}
    assert off <= 3000 * 0.02


def test_a_policy_without_effect_passes() -> None:
    world = World(lambda _, __: 2.0)
    world.run(TWO_SECONDS + 5)
    assert verdicts(world) == {"a": Verdict.FINE, "b": Verdict.FINE}


def test_a_policy_that_wants_nothing_is_never_tried() -> None:
    world = World(lambda _, __: 2.0, acts_on=())
    world.run(100)
    assert world.standings == {}
    assert not any(decision.knobs for _, decision in world.history)


def test_harm_to_one_of_many_turns_the_policy_off_there_only() -> None:
    world = World(lambda name, acted: 6.0 if acted and name == "b" else 1.5, names=("a", "b", "c", "d"))
    world.run(TWO_SECONDS)
    assert verdicts(world)["b"] is Verdict.HARM
    assert world.knobs[batch(1)].weight == NEUTRAL
    assert world.knobs[batch(0)].weight != NEUTRAL


def test_harm_that_is_sure_of_no_workload_but_of_the_host_turns_the_policy_off_everywhere() -> None:
    found = 0
    for seed in range(10):
        world = World(lambda _, acted: 3.0 if acted else 1.5, names=tuple("abcdefgh"), noise=0.6, seed=seed)
        world.run(TWO_SECONDS)
        found += all(standing.is_neutral for standing in world.standings.values())
    assert found >= 9


def test_harm_to_one_that_goes_on_while_it_is_neutral_turns_the_policy_off_everywhere() -> None:
    world = World(lambda name, acted: 6.0 if acted and name == "b" else 1.5, names=("a", "b", "c", "d"))
    world.run(3 * TWO_SECONDS)
    assert verdicts(world) == {
        "a": Verdict.OTHERS,
        "b": Verdict.OTHERS,
        "c": Verdict.OTHERS,
        "d": Verdict.OTHERS,
    }
    assert not world.in_force()


def test_harm_to_a_workload_that_the_policy_never_touched_turns_it_off() -> None:
    world = World(
        lambda name, acted: 6.0 if acted and name == "c" else 1.5, names=("a", "b", "c"), acts_on=("a", "b")
    )
    world.run(TWO_SECONDS)
    assert verdicts(world) == {"a": Verdict.OTHERS, "b": Verdict.OTHERS}
    assert not world.in_force()


def test_harm_that_comes_later_is_found_within_two_seconds_too() -> None:
    turned = False

    def stretch(_: str, acted: bool) -> float:
        return 6.0 if acted and turned else 1.5

    world = World(stretch)
    world.run(200)
    assert verdicts(world)["a"] is Verdict.FINE
    turned = True
    world.run(TWO_SECONDS)
    assert verdicts(world)["a"] is Verdict.HARM
    assert not world.in_force()


def test_more_load_is_suspicious_but_no_harm() -> None:
    busier = False

    def stretch(_: str, acted: bool) -> float:
        return (4.0 if busier else 1.5) * (0.8 if acted else 1)

    world = World(stretch)
    world.run(200)
    busier = True
    world.run(40)
    assert verdicts(world)["a"] is Verdict.FINE
    assert world.standings["a"].since > 200


def test_an_idle_host_is_not_tried_until_it_works() -> None:
    world = harms()
    world.asleep.update(world.names)
    world.run(100)
    assert world.standings == {}
    world.asleep.clear()
    world.run(TWO_SECONDS)
    assert verdicts(world)["a"] is Verdict.HARM


def test_one_that_slept_through_a_trial_has_its_own_once_it_works() -> None:
    world = World(lambda name, acted: 6.0 if acted and name == "b" else 1.5)
    world.asleep.add("b")
    world.run(TWO_SECONDS)
    assert verdicts(world) == {"a": Verdict.FINE, "b": Verdict.UNTRIED}
    world.asleep.clear()
    world.run(TWO_SECONDS + 1)
    assert verdicts(world)["b"] is Verdict.HARM


def test_trial_windows_undo_the_policy_and_give_it_back_what_it_had() -> None:
    world = World(lambda _, __: 2.0)
    world.run(TWO_SECONDS)
    seen = [rules(decision) for _, decision in world.history if decision.knobs]
    assert seen[:5] == [{"favours"}, {WITHOUT}, {WITH}, {WITHOUT}, {WITH}]


def test_critical_finds_its_weights_anew_after_a_window_without_it() -> None:
    world = World(lambda _, acted: 1.5 if acted else 2.0, inner=Critical())
    world.run(40)
    assert isinstance(world.state, GuardState)
    assert world.state.by_demand
    assert world.in_force()
    assert not any(WITH in rules(decision) for _, decision in world.history)


def test_the_paper_s_rules_go_on_in_each_window_from_where_they_were() -> None:
    world = World(lambda _, __: 2.0, inner=Dasec())
    world.run(TWO_SECONDS)
    assert any(WITH in rules(decision) for _, decision in world.history)
    assert verdicts(world) == {"a": Verdict.FINE, "b": Verdict.FINE}


def test_the_policy_takes_a_step_in_each_pair_of_windows() -> None:
    world = World(lambda _, __: 2.0, inner=Dasec())
    world.run(TWO_SECONDS)
    given = [decision.knobs for _, decision in world.history if WITH in rules(decision)]
    assert all(one != other for one, other in itertools.pairwise(given[:5]))


def test_between_trials_the_policy_rests_and_in_them_it_does_not() -> None:
    world = World(lambda _, acted: 1.5 if acted else 3.0, inner=Critical())
    world.run(3 * TWO_SECONDS)
    seen = [(len(rules(decision) & {WITH, WITHOUT}), decision.rest) for _, decision in world.history]
    assert any(rest > 1 for _, rest in seen)
    assert all(rest == 1 for switched, rest in seen if switched)


def test_between_trials_looking_may_wait_for_its_budget_and_in_them_it_does_not() -> None:
    world = World(lambda _, acted: 1.5 if acted else 3.0, inner=Critical())
    world.run(3 * TWO_SECONDS)
    after = [(decision.state, decision.can_wait) for _, decision in world.history]
    states = [(state.trial is None, waits) for state, waits in after if isinstance(state, GuardState)]
    assert {True, False} == {on_trial for on_trial, _ in states}
    assert all(waits is no_trial for no_trial, waits in states)


@pytest.mark.parametrize("late", [1, 20])
def test_the_next_try_comes_after_its_time_however_seldom_the_daemon_looks(late: int) -> None:
    world = World(lambda _, acted: 6 if acted else 1.5, parameters=GuardParameters(backoff_periods=200))
    world.run_until(lambda: verdicts(world).get("a") is Verdict.HARM, TWO_SECONDS + 1)
    looks = 0
    while verdicts(world)["a"] is Verdict.HARM:
        world.step(late)
        looks += 1
    assert looks == 200 // late


def test_while_it_is_off_the_policy_costs_no_more_looks_than_without_a_guard() -> None:
    world = World(lambda _, acted: 4.5 if acted else 1.5, inner=Critical())
    world.run_until(lambda: verdicts(world).get("a") is Verdict.HARM, 3 * TWO_SECONDS)
    world.step()
    assert world.history[-1][1].can_wait


def test_while_it_is_off_critical_rests_as_it_does_without_a_guard() -> None:
    world = World(lambda _, acted: 4.5 if acted else 1.5, inner=Critical())
    world.run_until(lambda: verdicts(world).get("a") is Verdict.HARM, 3 * TWO_SECONDS)
    assert world.standings["a"].until > world.index + 100
    world.run(100)
    rests = [decision.rest for _, decision in world.history[-100:]]
    assert not any(decision.knobs for _, decision in world.history[-98:])
    assert rests.count(2) >= 90


def test_who_is_gone_is_forgotten_and_who_comes_in_its_place_is_tried() -> None:
    world = World(lambda _, acted: 4.5 if acted else 1.5, acts_on=("a", "b", "c"))
    world.run(TWO_SECONDS)
    assert set(verdicts(world)) == {"a", "b"}
    world.names = ("a", "c")
    world.run(TWO_SECONDS)
    assert set(verdicts(world)) == {"a", "c"}


def test_a_state_of_another_policy_is_no_memory() -> None:
    world = harms()
    world.step()
    made, _ = world.history[0]
    initial = world.policy.initial_state()
    assert world.policy.decide(made, Dasec().initial_state()) == world.policy.decide(made, initial)
