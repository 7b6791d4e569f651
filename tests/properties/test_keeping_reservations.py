"""What holds of masks while reservations are kept, whoever comes and goes, whatever the kernel refuses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from dasec.model import Core, Period, PolicyState
from dasec.plan import plan
from dasec.policies import Parameters, policy_named
from dasec.reservations.grants import CpuClass, Principle
from dasec.reservations.keep import ReservationState, held_in
from dasec.reservations.parameters import Booking, ReservationParameters

from ..builders import Group, Row, period

NAMES = "abcd"
CORES = 6
EVERY_CORE = frozenset(map(Core, range(CORES)))

asked = st.builds(
    Booking,
    st.sampled_from(NAMES),
    st.integers(1, 5).map(lambda steps: steps * 700) | st.integers(1, 3).map(lambda cpus: cpus * 1000),
    st.sampled_from([CpuClass.EXCLUSIVE, *CpuClass]),
)
parameters = st.builds(
    ReservationParameters, st.lists(asked, max_size=4).map(tuple), st.sampled_from(Principle)
)
rows = st.builds(
    Row,
    st.integers(0, 80),
    core=st.integers(0, CORES - 1),
    ready_ms=st.integers(0, 80),
    dispatches=st.integers(1, 90),
)
courses = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.lists(rows, max_size=3), min_size=1), max_size=8
)


@dataclass
class Host:
    """Masks, as they were left. Workloads that went come back with all cores."""

    masks: dict[tuple[str, int], frozenset[Core]] = field(default_factory=dict)

    def seen(self, course: dict[str, list[Row]]) -> Period:
        seen = period(*(Group(name, rows) for name, rows in course.items()), cores=CORES)
        now = {
            (group.name, row): self.masks.get((group.name, row), EVERY_CORE)
            for group in seen.workloads
            for row in range(len(group.vcpus))
        }
        self.masks = now
        knobs = {
            vcpu.id: seen.knobs[vcpu.id]._replace(affinity=now[group.name, row])
            for group in seen.workloads
            for row, vcpu in enumerate(group.vcpus)
        }
        return replace(seen, knobs=knobs)

    def take(self, seen: Period, new: Period) -> None:
        for group in seen.workloads:
            for row, vcpu in enumerate(group.vcpus):
                mask = new.knobs[vcpu.id].affinity
                assert mask
                self.masks[group.name, row] = mask


class Daemon:
    """A policy within reservations, and what it remembers."""

    def __init__(self, name: str, told: ReservationParameters) -> None:
        self.policy = policy_named(name, Parameters(reservations=told))
        self.state: PolicyState = self.policy.initial_state()

    def after(self, seen: Period, *, refused: bool = False) -> Period:
        """The period with the masks as they are then. `refused`: the kernel takes none of them."""
        decision = self.policy.decide(seen, self.state)
        planned = plan(seen, decision)
        assert planned.violations == ()
        self.state = decision.state
        knobs = dict(seen.knobs)
        for change in () if refused else planned.changes:
            if isinstance(change.new, frozenset):
                knobs[change.vcpu] = knobs[change.vcpu]._replace(affinity=change.new)
        return replace(seen, knobs=knobs)


@given(st.sampled_from(["none", "dasec", "critical"]), parameters, courses)
def test_nobody_is_ever_on_a_cpu_that_somebody_has_for_itself(
    name: str, told: ReservationParameters, course: list[dict[str, list[Row]]]
) -> None:
    host, daemon = Host(), Daemon(name, told)
    for step in course:
        seen = host.seen(step)
        new = daemon.after(seen)
        host.take(seen, new)
        held = held_in(daemon.state, seen.topology)
        assert held is not None
        for group in seen.workloads:
            may = held.cpus_of(group.name) if group.name in held.grants else held.shared
            assert all((new.knobs[vcpu.id].affinity or EVERY_CORE) <= may for vcpu in group.vcpus)
        assert isinstance(daemon.state, ReservationState)
        named = {each.workload for each in daemon.state.unkept}
        asked_for = {ask.name for ask in told.asks_of(seen)}
        assert asked_for == named | held.grants.keys()


@given(parameters, courses, st.data())
def test_once_nobody_has_any_all_get_all_cores_back_even_if_the_kernel_refuses_now_and_then(
    told: ReservationParameters, course: list[dict[str, list[Row]]], data: st.DataObject
) -> None:
    host, daemon = Host(), Daemon("none", told)
    for step in course:
        seen = host.seen({**step, "z": [Row(), Row(core=1)]})
        host.take(seen, daemon.after(seen, refused=data.draw(st.booleans())))
    for _ in range(2):
        seen = host.seen({"z": [Row(), Row(core=1)]})
        host.take(seen, daemon.after(seen))
    assert set(host.masks.values()) == {EVERY_CORE}
    assert isinstance(daemon.state, ReservationState)
    assert (daemon.state.kept, daemon.state.aims, daemon.state.unkept) == ((), (), ())


@given(parameters, courses)
def test_what_somebody_has_it_keeps_while_others_come_and_go(
    told: ReservationParameters, course: list[dict[str, list[Row]]]
) -> None:
    host, daemon = Host(), Daemon("none", told)
    before: dict[str, object] = {}
    for step in course:
        daemon.after(host.seen(step))
        assert isinstance(daemon.state, ReservationState)
        now = {each.workload: each for each in daemon.state.kept}
        assert all(now[name] == before[name] for name in now.keys() & before.keys())
        assert before.keys() & {name for name, threads in step.items() if threads} <= now.keys()
        before = dict(now)
