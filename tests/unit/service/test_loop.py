"""The loop observes, decides, applies and tells; no trouble of a host stops it; its end puts all back."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from dasec.budget import LONGEST_NS, UNBOUNDED, Budget
from dasec.critical import Critical
from dasec.hosts.fake.fake import DEFAULT_SLICE_NS, EXACT, FakeHost, Stretch
from dasec.log import Announcer
from dasec.loop import Parts, control
from dasec.model import Change, Decision, Outcome, Period, PolicyState, Result, Snapshot, ThreadState, VcpuId
from dasec.paper import Dasec
from dasec.policies import Parameters
from dasec.policy import Policy
from dasec.record.encode import Encoder
from dasec.record.entries import Entry
from dasec.rivals.none import Untouched
from dasec.roster import RosterEntry

PERIOD_NS = 80_000_000
HUNGRY = Stretch(60_000_000, 20_000_000, 9, ThreadState.READY)


@dataclass
class Hours:
    """A pace without a clock: each wait lets the fake kernel's time pass."""

    host: FakeHost
    left: int
    late: int = 0
    behaviour: list[tuple[VcpuId, Stretch]] = field(default_factory=list)
    hangups: Sequence[int] = ()
    """Before which waits are over (counted from the end) somebody asks for a reload."""
    leaps: Mapping[int, int] = field(default_factory=dict)
    """How much more time passes in these waits, counted from the end."""
    unplugged: Mapping[int, int] = field(default_factory=dict)
    """Which core goes away in these waits."""

    def reload_due(self) -> bool:
        return self.left in self.hangups

    def wait(self, periods: int) -> bool:
        self.left -= 1
        self.host.advance(periods * PERIOD_NS + self.leaps.get(self.left, 0), self.behaviour)
        if self.left in self.unplugged:
            self.host.unplug(self.unplugged[self.left])
        return self.left >= 0


@dataclass
class Listener:
    """Keeps what it is told."""

    heard: list[tuple[Entry, PolicyState]] = field(default_factory=list)

    def write(self, entry: Entry, before: PolicyState) -> None:
        self.heard.append((entry, before))


class Moody(FakeHost):
    """Fails to observe, or refuses to write, in the turns that it is told. It follows wake-ups."""

    blind: Sequence[int] = ()
    full: Sequence[int] = ()
    why = "nothing written: disk full"
    turn_number = 0

    def observe(self, roster: Sequence[RosterEntry]) -> Snapshot:
        self.turn_number += 1
        if self.turn_number in self.blind:
            raise OSError(24, "Too many open files")
        return super().observe(roster)

    def apply(self, changes: Sequence[Change]) -> tuple[Result, ...]:
        if self.turn_number in self.full:
            return tuple(Result(one, Outcome.REJECTED, self.why) for one in changes)
        return super().apply(changes)


@dataclass(frozen=True)
class Broken:
    """A policy with a bug."""

    name: str = "broken"

    def initial_state(self) -> PolicyState:
        return PolicyState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        if period.index == 2:
            raise ZeroDivisionError("a bug")
        return Dasec().decide(period, Dasec().initial_state())


@dataclass(frozen=True)
class Says:
    """A policy that wants what it is told to, in each period."""

    says: Callable[[Period], Decision]
    name: str = "says"

    def initial_state(self) -> PolicyState:
        return PolicyState()

    def decide(self, period: Period, state: PolicyState) -> Decision:
        return self.says(period)


class Scene:
    """Four vCPUs of two workloads, the first one hungry."""

    def __init__(self, periods: int) -> None:
        self.host = Moody(2, capabilities=replace(EXACT, wake_edges=True))
        self.vcpus = [self.host.spawn(pid, tid) for pid, tid in ((1, 1), (1, 2), (3, 3), (3, 4))]
        self.roster = [RosterEntry("a", 1024, ((1, 1), (1, 2))), RosterEntry("b", 1024, ((3, 3), (3, 4)))]
        self.hours = Hours(self.host, periods, behaviour=[(self.vcpus[0], HUNGRY)])
        self.listener = Listener()
        self.keeper_lives = True

    def run(
        self,
        policy: Policy | None = None,
        budget: Budget = UNBOUNDED,
        reload: Callable[[], Policy] = Untouched,
    ) -> None:
        parts = Parts(
            lambda: self.roster,
            self.host,
            policy or Dasec(),
            reload,
            lambda: self.keeper_lives,
            (self.listener,),
            Announcer(),
            budget,
        )
        control(parts, self.hours)

    def outcomes(self) -> set[Outcome]:
        return {result.outcome for entry, _ in self.listener.heard for result in entry.results}


def test_every_period_is_told_with_the_state_it_was_decided_from() -> None:
    scene = Scene(5)
    scene.run()
    entries = [entry for entry, _ in scene.listener.heard]
    assert [entry.period.index for entry in entries] == [0, 1, 2, 3, 4]
    states = [before for _, before in scene.listener.heard]
    assert states[0] == Dasec().initial_state()
    assert states[1:] == [entry.decision.state for entry in entries[:-1]]


def test_the_loop_writes_knobs_and_its_end_puts_them_back() -> None:
    scene = Scene(5)
    scene.run()
    assert scene.host.writes
    assert all(scene.host.knobs_of(vcpu)[:2] == (1024, DEFAULT_SLICE_NS) for vcpu in scene.vcpus)


def test_a_period_is_as_long_as_the_time_that_passed() -> None:
    scene = Scene(3)
    scene.run()
    assert {entry.period.length_ns for entry, _ in scene.listener.heard} == {PERIOD_NS}


def test_where_a_budget_is_spent_the_next_look_is_later_and_the_entry_says_so() -> None:
    scene = Scene(4)
    scene.run(Says(lambda _: Decision(can_wait=True)), Budget(1e-4, PERIOD_NS))
    entries = [entry for entry, _ in scene.listener.heard]
    longest = LONGEST_NS // PERIOD_NS
    assert [entry.period.length_ns // PERIOD_NS for entry in entries] == [1, longest, longest, longest]
    assert all(entry.outlay.rest == longest and entry.outlay.cpu_ns > 0 for entry in entries)


def test_a_policy_is_asked_again_after_as_many_periods_as_it_said() -> None:
    scene = Scene(4)
    scene.run(Says(lambda _: Decision(rest=3)))
    lengths = [entry.period.length_ns // PERIOD_NS for entry, _ in scene.listener.heard]
    assert lengths == [1, 3, 3, 3]


def test_wake_ups_are_followed_but_where_the_policy_does_not_need_it_and_the_period_says_so() -> None:
    scene = Scene(5)
    scene.run(Says(lambda period: Decision(unwatched=period.index in (1, 2))))
    periods = [entry.period for entry, _ in scene.listener.heard]
    assert [each.unwatched for each in periods] == [False, False, True, True, False]
    assert [each.length_ns for each in periods] == [PERIOD_NS] * 5


def test_a_reload_that_keeps_the_policy_loses_no_period_and_no_state() -> None:
    scene, policy = Scene(6), Dasec()
    scene.hours.hangups = (4, 3)
    scene.run(policy, reload=lambda: policy)
    entries = [entry for entry, _ in scene.listener.heard]
    assert [entry.period.length_ns for entry in entries] == [PERIOD_NS] * 6
    assert [before for _, before in scene.listener.heard][1:] == [
        entry.decision.state for entry in entries[:-1]
    ]


def test_another_policy_begins_in_the_same_period_with_every_knob_as_at_first() -> None:
    scene = Scene(6)
    scene.hours.hangups = (2,)
    scene.run(Dasec(), reload=Untouched)
    entries = [entry for entry, _ in scene.listener.heard]
    assert [entry.period.length_ns for entry in entries] == [PERIOD_NS] * 6
    assert [bool(entry.results) for entry in entries[3:]] == [False] * 3
    first = {vcpu: knobs[:2] for vcpu, knobs in entries[0].period.knobs.items()}
    assert {vcpu: knobs[:2] for vcpu, knobs in entries[2].period.knobs.items()} != first
    assert {vcpu: knobs[:2] for vcpu, knobs in entries[3].period.knobs.items()} == first


def test_workloads_that_come_and_go_by_a_reload_are_managed_and_put_back_in_that_period() -> None:
    scene, policy = Scene(6), Dasec()
    newcomer = scene.host.spawn(5, 5)
    scene.hours.hangups = (2,)

    def reload() -> Policy:
        scene.roster = [scene.roster[1], RosterEntry("c", 1024, ((5, 5),))]
        return policy

    scene.run(policy, reload=reload)
    named = [[each.name for each in entry.period.workloads] for entry, _ in scene.listener.heard]
    assert named == [["a", "b"]] * 3 + [["b", "c"]] * 3
    assert newcomer in scene.listener.heard[-1][0].period.knobs
    gone = scene.listener.heard[2][0].period.workloads[0].vcpus
    assert all(scene.host.knobs_of(vcpu.id)[:2] == (1024, DEFAULT_SLICE_NS) for vcpu in gone)


def test_a_host_that_cannot_observe_costs_a_period_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(8)
    scene.host.blind = (3, 4, 5)
    scene.run()
    assert [entry.period.index for entry, _ in scene.listener.heard] == [0, 1, 2, 3, 4]
    assert scene.listener.heard[1][0].period.length_ns == 4 * PERIOD_NS
    assert caplog.messages == [
        "cannot observe: [Errno 24] Too many open files: trying again every period",
        "observing again",
    ]


def test_a_host_that_is_blind_from_the_start_is_waited_for() -> None:
    scene = Scene(4)
    scene.host.blind = (1, 2)
    scene.run()
    assert len(scene.listener.heard) == 2


def test_a_full_journal_is_one_line_and_the_decisions_go_on(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(8)
    scene.host.full = (2, 3, 4)
    scene.run()
    assert len(scene.listener.heard) == 8
    assert scene.outcomes() == {Outcome.REJECTED, Outcome.APPLIED}
    assert caplog.messages == [
        "cannot write any knob: nothing written: disk full: trying again every period",
        "writing knobs again",
    ]


def test_a_name_in_a_detail_is_told_as_it_may_be_shown() -> None:
    scene = Scene(4)
    scene.host.full = range(9)
    scene.host.why = "group a\udcff\x1b[2J is full"
    scene.run()
    encoder, _ = Encoder.begin("none", Parameters(), PolicyState())
    for entry, _ in scene.listener.heard:
        assert {result.detail for result in entry.results} <= {"group a\ufffd\ufffd[2J is full"}
        assert encoder.line(entry)
    assert scene.outcomes() == {Outcome.REJECTED}


def test_nothing_is_written_while_no_keeper_lives(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(4)
    scene.keeper_lives = False
    scene.run()
    assert scene.host.writes == []
    assert caplog.messages == ["cannot write any knob: no keeper yet: trying again every period"]


MINUTE_NS = 60_000_000_000


def test_after_a_suspended_minute_knobs_stay_and_counting_begins_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "dasec")
    scene = Scene(6)
    scene.hours.leaps = {2: MINUTE_NS}
    scene.run()
    entries = [entry for entry, _ in scene.listener.heard]
    assert [entry.period.length_ns for entry in entries] == [PERIOD_NS] * 5
    wanted, kept = entries[2].decision.knobs[scene.vcpus[0]], entries[3].period.knobs[scene.vcpus[0]]
    assert wanted.weight == kept.weight != 1024
    assert caplog.messages == [
        "saw nothing for 60 s (machine suspended, daemon stopped, or no core for it):"
        " knobs stay, counting begins anew"
    ]


def test_a_clock_that_goes_back_costs_a_period_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dasec")
    scene = Scene(6)
    scene.hours.leaps = {2: -MINUTE_NS}
    scene.run()
    assert [entry.period.length_ns for entry, _ in scene.listener.heard] == [PERIOD_NS] * 5
    assert caplog.messages == [
        "the monotonic clock went back by 59.9 s: knobs stay, counting begins anew",
    ]


def test_a_look_that_was_due_late_is_no_gap() -> None:
    scene = Scene(4)
    scene.hours.leaps = {1: 4_900_000_000}
    scene.run()
    assert len(scene.listener.heard) == 4


@pytest.mark.parametrize("policy", [Dasec(), Critical()], ids=["dasec", "critical"])
def test_the_loop_goes_on_while_cores_go_away_even_all_of_them(policy: Policy) -> None:
    scene = Scene(9)
    scene.hours.unplugged = {5: 1, 2: 0}
    scene.run(policy)
    cores = [entry.period.topology.cores for entry, _ in scene.listener.heard]
    assert [len(each) for each in cores] == [2] * 3 + [1] * 3 + [0] * 3
    wanted = [
        knobs.affinity
        for entry, _ in scene.listener.heard[4:6]
        for knobs in entry.decision.knobs.values()
        if knobs.affinity is not None
    ]
    assert all(affinity <= {0} for affinity in wanted)


def test_a_thread_that_ends_costs_nobody_else_anything() -> None:
    scene = Scene(6)
    scene.host.end(scene.vcpus[3])
    scene.run()
    assert len(scene.listener.heard) == 6
    assert Outcome.VANISHED not in scene.outcomes()


def test_a_bug_in_a_policy_comes_out_after_everything_was_put_back() -> None:
    scene = Scene(6)
    with pytest.raises(ZeroDivisionError):
        scene.run(Broken())
    assert scene.host.writes
    assert all(scene.host.knobs_of(vcpu)[:2] == (1024, DEFAULT_SLICE_NS) for vcpu in scene.vcpus)


def test_the_garbage_collector_is_as_before_afterwards() -> None:
    Scene(2).run()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_late_periods_are_told() -> None:
    scene = Scene(2)
    scene.hours.late = 7
    scene.run()
    assert {entry.late_periods for entry, _ in scene.listener.heard} == {7}
