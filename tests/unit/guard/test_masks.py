"""Masks are an administrator's, who changes them while the guard tries what happens without the policy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dasec.critical import Critical
from dasec.guard import Guarded, GuardParameters
from dasec.guard.switch import NEUTRAL as LEFT_ALONE
from dasec.guard.switch import WITH, WITHOUT, intended, noted
from dasec.model import Knob, Knobs
from dasec.plan import plan
from dasec.policy import Policy
from dasec.reservations.grants import CpuClass
from dasec.reservations.keep import Reserving
from dasec.reservations.parameters import Booking, ReservationParameters
from dasec.rivals.static import StaticPinning

from ...builders import Group, Row, core_set, period, vcpu_id
from ...properties.invariants import after
from ..critical_life import FAN_OUT, background
from .world import World

ONE = vcpu_id(0, 0)
EAGER = GuardParameters(backoff_periods=20, recheck_periods=20)
GUARDS = {WITHOUT, WITH, LEFT_ALONE}


@pytest.mark.parametrize("inner", [None, Critical()], ids=["steps", "by_demand"])
@pytest.mark.parametrize("factor", [0.7, 4.0], ids=["gain", "harm"])
def test_the_guard_of_a_policy_that_wishes_no_masks_writes_none_whoever_widens_them(
    inner: Policy | None, factor: float
) -> None:
    world = World(lambda _, acted: 2.0 * (factor if acted else 1), inner=inner, parameters=EAGER, cores=8)
    for periods, allowed in ((6, range(8)), (9, range(4)), (40, range(2, 7)), (40, range(8)), (40, (1,))):
        world.run(periods)
        world.allow(*allowed)
    assert world.rules_of(Knob.WEIGHT) & GUARDS
    assert world.rules_of(Knob.AFFINITY) == set()


@pytest.mark.parametrize("widened", [3, 12, 24])
def test_without_a_policy_that_pins_a_vcpu_has_the_mask_that_it_was_given_meanwhile(widened: int) -> None:
    world = World(lambda _, acted: 5.0 if acted else 1.5, inner=StaticPinning(), cores=4)
    world.run(widened)
    world.allow(0, 1, 2, 3)
    world.run(24)
    assert LEFT_ALONE in world.rules_of(Knob.AFFINITY)
    assert world.masks() == {core_set(0, 1, 2, 3)}


def test_cpus_that_somebody_gave_back_are_used_by_all_who_may_in_a_trial_and_after() -> None:
    policy = Reserving(
        Guarded(Critical(), EAGER),
        ReservationParameters((Booking("rt", 2000, CpuClass.EXCLUSIVE),)),
    )
    web, rt = Group("web", [*FAN_OUT, background(), background()]), Group("rt", [Row(40)])
    state, knobs = policy.initial_state(), period(web, rt, cores=4).knobs
    rules: set[str] = set()
    for index in range(90):
        made = period(*((web, rt) if index < 12 else (web,)), cores=4, index=index)
        made = replace(made, knobs={vcpu: knobs[vcpu] for vcpu in made.knobs})
        decision = policy.decide(made, state)
        state, knobs = decision.state, {**knobs, **after(made, plan(made, decision)).knobs}
        rules |= {reason.rule for reason in decision.reasons}
    assert {"reserve.shared", WITHOUT} <= rules
    assert {knobs[vcpu_id(0, row)].affinity for row in range(6)} == {core_set(0, 1, 2, 3)}


def test_what_a_knob_was_is_noted_when_it_is_wished_for_the_first_time() -> None:
    early = period(Group("a", [Row(20, weight=1024, latency_us=3)]))
    late = period(Group("a", [Row(20, weight=500, latency_us=5)]))
    prior = noted((), {ONE: Knobs(500, None, None)}, early)
    assert prior == ((ONE, Knobs(1024, None, None)),)
    prior = noted(prior, {ONE: Knobs(300, 9000, None)}, late)
    assert prior == ((ONE, Knobs(1024, 5000, None)),)
    assert noted(prior, {ONE: Knobs(200, 7000, None)}, late) is prior


def test_a_policy_that_goes_step_by_step_gets_back_those_knobs_only_that_it_wishes() -> None:
    made = period(Group("a", [Row(20, weight=500)]))
    prior = ((ONE, Knobs(1024, None, None)),)
    assert intended(prior, {}, made) == ((ONE, Knobs(500, None, None)),)
    assert intended(prior, {ONE: Knobs(1024, None, None)}, made) == ()
