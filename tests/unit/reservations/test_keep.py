"""A workload with reserved CPUs gets them, others leave them, and each goes back when that is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic import TypeAdapter
from pydantic_core import to_json

from dasec.model import NO_KNOBS, Core, CpuWish, Decision, Period, PolicyState
from dasec.plan import plan
from dasec.policies import Parameters, policy_named
from dasec.policy import Policy
from dasec.record.replay import state_type
from dasec.reservations.grants import CpuClass, Principle
from dasec.reservations.keep import ReservationState, Reserving
from dasec.reservations.parameters import Booking, ReservationParameters
from tests.builders import Group, Row, core_set, period

EVERY_CORE = core_set(0, 1, 2, 3)
WEB = Booking("web", 2000, CpuClass.WHOLE)


def policy(*asks: Booking, inner: str = "none", apart: bool = False) -> Policy:
    return policy_named(inner, Parameters(reservations=ReservationParameters(asks, Principle.HARD, apart)))


class World:
    """Four cores, and masks as the last decision left them."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.state: PolicyState = policy.initial_state()
        self.masks: dict[str, list[frozenset[Core] | None]] = {}

    def run(self, *groups: Group, cores: int = 4) -> Decision:
        seen = self._as_it_is(period(*groups, cores=cores))
        decision = self.policy.decide(seen, self.state)
        planned = plan(seen, decision)
        assert planned.violations == ()
        names = {
            vcpu.id: (group.name, row) for group in seen.workloads for row, vcpu in enumerate(group.vcpus)
        }
        for change in planned.changes:
            name, row = names[change.vcpu]
            if isinstance(change.new, frozenset):
                self.masks[name][row] = change.new
        self.state = decision.state
        return decision

    def unkept(self) -> list[tuple[str, str]]:
        assert isinstance(self.state, ReservationState)
        return [(each.workload, each.why) for each in self.state.unkept]

    def _as_it_is(self, seen: Period) -> Period:
        knobs = dict(seen.knobs)
        for group in seen.workloads:
            masks = self.masks.setdefault(group.name, [knobs[vcpu.id].affinity for vcpu in group.vcpus])
            for vcpu, mask in zip(group.vcpus, masks, strict=True):
                knobs[vcpu.id] = knobs[vcpu.id]._replace(affinity=mask)
        return replace(seen, knobs=knobs)


def rows(count: int, allowed: Sequence[int] | None = None, *, movable: bool = True) -> list[Row]:
    return [Row(core=index % 4, allowed=allowed, movable=movable) for index in range(count)]


def test_whole_cpus_are_of_one_workload_and_all_others_leave_them() -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(3)), Group("batch", rows(2)))
    own, rest = set(world.masks["web"]), set(world.masks["batch"])
    assert own == {core_set(0, 1)}
    assert rest == {core_set(2, 3)}


def test_when_it_ends_the_others_get_its_cpus_back() -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(3)), Group("batch", rows(2)))
    world.run(Group("batch", rows(2)))
    assert world.masks["batch"] == [EVERY_CORE, EVERY_CORE]


def test_who_could_not_be_moved_back_at_once_is_moved_later() -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(1)), Group("batch", rows(2)))
    narrow = list(world.masks["batch"])
    world.run(Group("batch", rows(2)))
    world.masks["batch"] = [narrow[0], EVERY_CORE]  # the kernel refused one write
    world.run(Group("batch", rows(2)))
    assert world.masks["batch"] == [EVERY_CORE, EVERY_CORE]
    assert isinstance(world.state, ReservationState)
    world.run(Group("batch", rows(2)))
    assert world.state.aims == ()


def test_nothing_is_written_while_nobody_asks() -> None:
    world = World(policy(WEB))
    decision = world.run(Group("batch", rows(4)))
    assert not decision.knobs
    assert not decision.reasons


def test_an_amount_with_a_fraction_shares_its_last_cpu_with_the_pool() -> None:
    world = World(policy(Booking("web", 1500, CpuClass.EXCLUSIVE)))
    world.run(Group("web", rows(2)), Group("batch", rows(2)))
    assert world.masks["web"] == [core_set(0, 1)] * 2
    assert world.masks["batch"] == [core_set(1, 2, 3)] * 2


def test_what_does_not_fit_is_refused_and_says_so_and_nothing_of_it_is_done() -> None:
    world = World(policy(WEB, Booking("db", 3000, CpuClass.WHOLE)))
    world.run(Group("web", rows(2)), Group("db", rows(2)), Group("batch", rows(1)))
    assert world.unkept() == [("db", "wants 3 CPUs, and 2 CPUs are not given yet")]
    assert world.masks["db"] == [core_set(2, 3)] * 2
    world.run(Group("db", rows(2)), Group("batch", rows(1)))
    assert world.unkept() == []
    assert len(world.masks["db"][0] or ()) == 3


def test_qemus_main_thread_stays_where_it_is_and_nothing_depends_on_where() -> None:
    main = Row(allowed=(3,), movable=False, emulator=True)
    world = World(policy(WEB))
    decision = world.run(Group("web", [*rows(2, allowed=(0, 1, 2)), main]), Group("batch", [*rows(1), main]))
    assert world.masks["web"] == [core_set(0, 1)] * 2 + [None]
    assert world.masks["batch"] == [core_set(2, 3), None]
    assert world.unkept() == []
    assert len(decision.knobs) == 3


def test_a_workload_gets_only_cpus_that_its_own_masks_allow() -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(2, allowed=(1, 3))), Group("batch", rows(1)))
    assert world.masks == {"web": [core_set(1, 3)] * 2, "batch": [core_set(0, 2)]}
    world = World(policy(WEB))
    world.run(Group("web", [Row(allowed=(0, 1)), Row(allowed=(1, 2))]), Group("batch", rows(1)))
    assert world.unkept() == [("web", "wants 2 whole CPUs, and the pool can give 1")]
    assert world.masks["batch"] == [EVERY_CORE]


@pytest.mark.parametrize(
    "stranger", [rows(1, allowed=(0,)), rows(1, movable=False)], ids=["pinned there", "not ours to move"]
)
def test_who_stays_on_the_cpus_of_another_is_told(stranger: list[Row]) -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(2)), Group("batch", stranger))
    ((workload, why),) = world.unkept()
    assert workload == "batch"
    assert "may run elsewhere, and its mask is not ours to change" in why


def test_a_cpu_that_goes_offline_is_not_kept_and_others_are_found() -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(1)), Group("batch", rows(1)), cores=4)
    world.masks = {"web": [core_set(0)], "batch": [core_set(0)]}
    world.run(Group("web", [Row()]), Group("batch", [Row()]), cores=1)
    assert world.unkept() == [("web", "wants 2 CPUs, and 1 CPU are not given yet")]


ALL_OF_IT = Booking("web", 4000, CpuClass.WHOLE)


def test_where_the_rest_of_the_system_is_apart_all_cpus_may_be_given_away() -> None:
    world = World(policy(ALL_OF_IT, apart=True))
    world.run(Group("web", rows(2)))
    assert world.unkept() == []


def test_the_last_cpu_is_kept_for_a_workload_that_has_none_of_its_own() -> None:
    world = World(policy(ALL_OF_IT, apart=True))
    world.run(Group("web", rows(2)), Group("batch", rows(1)))
    assert world.unkept() == [("web", "wants 4 whole CPUs, and the pool can give 3")]


def test_who_comes_when_all_are_given_away_is_told_once_why_it_runs_on_them() -> None:
    world = World(policy(ALL_OF_IT, apart=True))
    world.run(Group("web", rows(2)))
    decision = world.run(Group("web", rows(2)), Group("batch", rows(2)))
    assert not decision.knobs
    assert world.unkept() == [("batch", "all CPUs are reserved by others, and it runs on them")]
    world.run(Group("batch", rows(2)))
    assert world.unkept() == []


def test_who_may_not_use_its_cpus_any_more_gets_others_and_leaves_those() -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(2)), Group("batch", rows(1)))
    assert world.masks["web"] == [core_set(0, 1)] * 2
    world.masks["web"] = [core_set(1)] * 2  # what its new cpuset, of 1 to 3, leaves of them
    world.run(Group("web", rows(2, allowed=(1, 2, 3))), Group("batch", rows(1)))
    assert world.masks == {"web": [core_set(1, 2)] * 2, "batch": [core_set(0, 3)]}
    assert world.unkept() == []
    world.run(Group("web", rows(2, allowed=(3,))), Group("batch", rows(1)))
    assert world.unkept() == [("web", "wants 2 whole CPUs, and the pool can give 1")]
    assert world.masks["batch"] == [EVERY_CORE]


def test_one_thread_that_may_use_less_takes_nothing_from_the_others() -> None:
    world = World(policy(WEB))
    world.run(Group("web", rows(2)), Group("batch", rows(1)))
    world.run(Group("web", [*rows(1), Row(allowed=(0,))]), Group("batch", rows(1)))
    assert world.unkept() == []
    assert world.masks["batch"] == [core_set(2, 3)]


def test_a_pattern_reserves_for_each_that_it_matches() -> None:
    world = World(policy(Booking("docker:web-*", 1000, CpuClass.WHOLE)))
    world.run(Group("docker:web-1", rows(1)), Group("docker:web-2", rows(1)), Group("docker:db", rows(1)))
    assert world.masks == {
        "docker:web-1": [core_set(0)],
        "docker:web-2": [core_set(1)],
        "docker:db": [core_set(2, 3)],
    }


class Mover:
    """A policy that pins each vCPU to the highest core that it is told it may use."""

    name = "mover"

    def initial_state(self) -> PolicyState:
        return PolicyState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        vcpus = [vcpu for workload in period.workloads for vcpu in workload.vcpus]
        pins = {vcpu.id: NO_KNOBS._replace(affinity=frozenset((max(vcpu.allowed),))) for vcpu in vcpus}
        return Decision(pins, state=state)


def test_the_policy_pins_only_within_what_a_workload_has() -> None:
    world = World(Reserving(Mover(), ReservationParameters((WEB,))))
    for _ in range(2):
        world.run(Group("web", rows(2)), Group("batch", rows(2)))
        assert world.masks == {"web": [core_set(1)] * 2, "batch": [core_set(3)] * 2}
    world.run(Group("batch", rows(2)))
    assert world.masks["batch"] == [core_set(3)] * 2


def test_what_is_remembered_comes_back_from_a_record() -> None:
    reserving = policy(WEB, Booking("db", 1500, CpuClass.EXCLUSIVE), inner="critical")
    world = World(reserving)
    world.run(Group("web", rows(2)), Group("db", rows(2)), Group("batch", rows(1)))
    assert TypeAdapter(state_type(reserving)).validate_json(to_json(world.state)) == world.state


def who_ask_themselves(most_millicores: int, *asks: Booking) -> Policy:
    """So much may be had by all together who ask themselves."""
    told = ReservationParameters(asks, Principle.HARD, by_themselves=most_millicores)
    return policy_named("none", Parameters(reservations=told))


def test_a_workload_that_asks_itself_gets_what_all_such_together_may_have() -> None:
    world = World(who_ask_themselves(1500))
    one, two = CpuWish("whole", 700), CpuWish("exclusive", 1000)
    world.run(Group("web", rows(2), wish=one), Group("db", rows(2), wish=two), Group("batch", rows(1)))
    assert world.unkept() == [("db", "asks for 1 CPU by itself, and may have 0.5 CPUs")]
    assert world.masks["web"] == [core_set(0)] * 2
    assert world.masks["db"] == [core_set(1, 2, 3)] * 2
    world.run(Group("db", rows(2), wish=two), Group("batch", rows(1)))
    assert world.unkept() == []
    assert world.masks["batch"][0] == EVERY_CORE - (world.masks["db"][0] or EVERY_CORE)


def test_what_the_configuration_says_of_a_workload_is_more_than_what_it_asks_itself() -> None:
    world = World(who_ask_themselves(4000, WEB))
    world.run(Group("web", rows(2), wish=CpuWish("whole", 3000)), Group("batch", rows(1)))
    assert world.masks["web"] == [core_set(0, 1)] * 2


def test_a_wish_changes_nothing_where_nobody_may_ask() -> None:
    world = World(policy(WEB))
    world.run(Group("db", rows(2), wish=CpuWish("whole", 1000)), Group("batch", rows(1)))
    assert world.unkept() == [("db", "asks for 1 CPU by itself, and may have 0 CPUs")]
    assert world.masks == {"db": [EVERY_CORE] * 2, "batch": [EVERY_CORE]}


def test_who_is_first_in_the_configuration_is_first_wherever_it_is_found() -> None:
    world = World(policy(WEB, Booking("*", 3000, CpuClass.WHOLE)))
    world.run(Group("batch", rows(1)), Group("web", rows(2)))
    assert world.unkept() == [("batch", "wants 3 CPUs, and 2 CPUs are not given yet")]
