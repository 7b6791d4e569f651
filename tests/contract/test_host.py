"""What every Host does. Whoever adds a host adds a stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.model import THREAD_KNOBS, Change, Core, Knob, KnobValue, Outcome, Restored, ThreadState, VcpuId

from .stage import (
    ExtStage,
    FakeStage,
    MainlineStage,
    PatchedStage,
    Stage,
    probed_with_patch,
    probed_with_scheduler,
    roster,
)

HOSTS = [
    "fake",
    pytest.param("mainline", marks=pytest.mark.host),
    pytest.param("mainline without BPF", marks=pytest.mark.host),
    pytest.param("patched_cfs", marks=pytest.mark.host),
    pytest.param("sched_ext", marks=pytest.mark.host),
]

NEW: dict[Knob, KnobValue] = {
    Knob.WEIGHT: 1126,
    Knob.RESCHEDULING_LATENCY: 4_000_000,
    Knob.AFFINITY: frozenset({Core(0)}),
}
THEIRS: dict[Knob, KnobValue] = {
    Knob.WEIGHT: 2048,
    Knob.RESCHEDULING_LATENCY: 9_000_000,
    Knob.AFFINITY: frozenset({Core(1)}),
}


def build(kind: str, directory: Path, *, dry_run: bool = False) -> Stage:
    if kind == "fake":
        return FakeStage(dry_run=dry_run)
    if kind == "sched_ext":
        if probed_with_scheduler().backend != "sched_ext":
            pytest.skip("no sched_ext scheduler can be loaded here; tests/vm runs this where one can")
        return ExtStage(directory, dry_run=dry_run)
    if kind != "patched_cfs":
        return MainlineStage(directory, dry_run=dry_run, bpf=kind == "mainline")
    if probed_with_patch().backend != "patched_cfs":
        pytest.skip("this kernel has no /proc/PID/dasec; tests/vm runs this on one that has")
    return PatchedStage(directory, dry_run=dry_run)


@pytest.fixture(params=HOSTS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    made = build(request.param, tmp_path)
    yield made
    made.close()


def able(stage: Stage) -> list[Knob]:
    """The knobs that this host has; Linux before 6.12 has no slices to set."""
    can = stage.host.capabilities
    has = (can.weight, can.rescheduling_latency, can.affinity)
    return [knob for knob, there in zip(THREAD_KNOBS, has, strict=True) if there]


def skip_unless_capable(stage: Stage, knob: Knob) -> None:
    if knob not in able(stage):
        pytest.skip(f"this kernel has no {knob}")


@pytest.fixture(params=HOSTS)
def dry_stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    made = build(request.param, tmp_path, dry_run=True)
    yield made
    made.close()


def change(vcpu: VcpuId, knob: Knob, new: KnobValue | None = None) -> Change:
    value = NEW[knob] if new is None else new
    return Change(vcpu, knob, value, value, "test")


def shown(stage: Stage, vcpu: VcpuId, knob: Knob) -> KnobValue | None:
    """What the next snapshot says of a knob."""
    knobs = stage.host.observe(roster([vcpu])).knobs[vcpu]
    by_knob: dict[Knob, KnobValue | None] = {
        Knob.WEIGHT: knobs.weight,
        Knob.RESCHEDULING_LATENCY: knobs.rescheduling_latency_ns,
        Knob.AFFINITY: knobs.affinity,
    }
    return by_knob[knob]


def test_a_snapshot_holds_the_threads_of_the_roster(stage: Stage) -> None:
    one, two, other = stage.spawn(), stage.spawn(), stage.spawn()
    snapshot = stage.host.observe(roster([one], [two]))
    assert [workload.name for workload in snapshot.workloads] == ["w0", "w1"]
    assert [vcpu.id for workload in snapshot.workloads for vcpu in workload.vcpus] == [one, two]
    assert set(snapshot.counters) == set(snapshot.knobs) == {one, two}
    assert other not in snapshot.counters


def test_a_snapshot_keeps_what_it_said(stage: Stage) -> None:
    vcpu = stage.spawn()
    before = stage.host.observe(roster([vcpu]))
    knobs = before.knobs[vcpu]
    stage.host.apply([change(vcpu, Knob.AFFINITY)])
    stage.host.observe(roster([vcpu]))
    assert before.knobs[vcpu] == knobs


def test_a_sleeping_thread_is_idle_and_knows_its_core(stage: Stage) -> None:
    vcpu = stage.spawn()
    for _ in range(3):
        snapshot = stage.host.observe(roster([vcpu]))
    assert snapshot.counters[vcpu].state is ThreadState.IDLE
    assert snapshot.counters[vcpu].core in snapshot.topology.cores


def test_the_clock_goes_forward(stage: Stage) -> None:
    first = stage.host.observe(())
    second = stage.host.observe(())
    assert second.clock_ns >= first.clock_ns


def test_a_thread_that_does_not_exist_is_left_out(stage: Stage) -> None:
    vcpu = stage.spawn()
    ghost = VcpuId(2**22 + 1, 2**22 + 1, 1)
    snapshot = stage.host.observe(roster([ghost, vcpu]))
    assert list(snapshot.counters) == [vcpu]


def test_a_thread_that_ended_leaves_the_snapshot(stage: Stage) -> None:
    one, two = stage.spawn(), stage.spawn()
    stage.host.observe(roster([one, two]))
    stage.end(one)
    snapshot = stage.host.observe(roster([one, two]))
    assert list(snapshot.counters) == [two]
    assert [vcpu.id for vcpu in snapshot.workloads[0].vcpus] == [two]


def test_a_thread_of_two_workloads_belongs_to_the_first(stage: Stage) -> None:
    vcpu = stage.spawn()
    snapshot = stage.host.observe(roster([vcpu], [vcpu]))
    assert [len(workload.vcpus) for workload in snapshot.workloads] == [1, 0]


@pytest.mark.parametrize("knob", THREAD_KNOBS)
def test_what_is_applied_is_what_the_kernel_has(stage: Stage, knob: Knob) -> None:
    skip_unless_capable(stage, knob)
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    (result,) = stage.host.apply([change(vcpu, knob)])
    assert result == (change(vcpu, knob), Outcome.APPLIED, "")
    assert shown(stage, vcpu, knob) == NEW[knob]
    held = stage.held_by_kernel(vcpu)
    assert NEW[knob] in (held.weight, held.rescheduling_latency_ns, held.affinity)


@pytest.mark.parametrize("knob", THREAD_KNOBS)
def test_restore_puts_back_what_was_there_and_does_it_once(stage: Stage, knob: Knob) -> None:
    skip_unless_capable(stage, knob)
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    stage.host.observe(roster([vcpu]))
    for _ in range(3):
        stage.host.apply([change(vcpu, knob)])
    restored = stage.host.restore()
    assert restored.put_back >= 1
    assert (restored.left_alone, restored.failed) == ((), ())
    assert stage.held_by_kernel(vcpu) == before
    assert stage.host.restore() == Restored(0, (), 0, ())


def test_after_a_restore_the_host_can_go_on(stage: Stage) -> None:
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    for _ in range(2):
        (result,) = stage.host.apply([change(vcpu, Knob.WEIGHT)])
        assert result.outcome is Outcome.APPLIED
        stage.host.restore()
        assert shown(stage, vcpu, Knob.WEIGHT) == 1024


@pytest.mark.parametrize("knob", THREAD_KNOBS)
def test_whether_wake_ups_are_followed_is_seen_and_leaves_knobs_as_they_are(stage: Stage, knob: Knob) -> None:
    skip_unless_capable(stage, knob)
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    assert not stage.host.observe(roster([vcpu])).unwatched
    stage.host.apply([change(vcpu, knob)])
    stage.host.watch(False)
    stage.host.watch(False)
    seen = stage.host.observe(roster([vcpu]))
    can_leave_it_out = stage.host.capabilities.wake_edges and not isinstance(stage, PatchedStage)
    assert (list(seen.counters), seen.unwatched) == ([vcpu], can_leave_it_out)
    assert shown(stage, vcpu, knob) == NEW[knob]
    stage.host.watch(True)
    assert not stage.host.observe(roster([vcpu])).unwatched
    stage.host.watch(False)
    assert stage.host.restore().put_back >= 1
    assert stage.held_by_kernel(vcpu) == before


@pytest.mark.parametrize("knob", THREAD_KNOBS)
def test_a_foreign_write_is_yielded_to_within_a_period_and_survives_restore(stage: Stage, knob: Knob) -> None:
    skip_unless_capable(stage, knob)
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    stage.host.apply([change(vcpu, knob)])
    stage.host.observe(roster([vcpu]))
    stage.meddle(vcpu, knob, THEIRS[knob])
    assert shown(stage, vcpu, knob) is None
    (result,) = stage.host.apply([change(vcpu, knob)])
    assert result.outcome is Outcome.YIELDED
    held = stage.held_by_kernel(vcpu)
    assert THEIRS[knob] in (held.weight, held.rescheduling_latency_ns, held.affinity)


def there_before_us(stage: Stage) -> list[Knob]:
    """Numbers that somebody else can set before we write them: on a mainline host the group of a weight is
    made by our first write."""
    made_by_us = {Knob.AFFINITY} | ({Knob.WEIGHT} if type(stage) is MainlineStage else set())
    return [knob for knob in able(stage) if knob not in made_by_us]


def test_what_somebody_sets_before_our_first_write_is_what_policies_find_and_restore_gives_back(
    stage: Stage,
) -> None:
    knobs = there_before_us(stage)
    if not knobs:
        pytest.skip("this kernel has no latency, and weights in groups of our own only")
    for knob in knobs:
        vcpu = stage.spawn()
        assert shown(stage, vcpu, knob) is not None
        stage.meddle(vcpu, knob, THEIRS[knob])
        (result,) = stage.host.apply([change(vcpu, knob)])
        assert result.outcome is Outcome.YIELDED
        assert "somebody else set its" in result.detail
        assert [shown(stage, vcpu, knob) for _ in range(2)] == [None, THEIRS[knob]]
        (result,) = stage.host.apply([change(vcpu, knob)])
        assert result.outcome is Outcome.APPLIED
        stage.host.restore()
        held = stage.held_by_kernel(vcpu)
        assert THEIRS[knob] in (held.weight, held.rescheduling_latency_ns)


def test_a_foreign_write_just_before_restore_is_left_alone(stage: Stage) -> None:
    skip_unless_capable(stage, Knob.RESCHEDULING_LATENCY)
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    stage.host.apply([change(vcpu, Knob.RESCHEDULING_LATENCY)])
    stage.meddle(vcpu, Knob.RESCHEDULING_LATENCY, 9_000_000)
    restored = stage.host.restore()
    assert len(restored.left_alone) == 1
    assert stage.held_by_kernel(vcpu).rescheduling_latency_ns == 9_000_000


def test_a_thread_that_leaves_the_roster_gets_its_knobs_back(stage: Stage) -> None:
    stays, leaves = stage.spawn(), stage.spawn()
    before = stage.held_by_kernel(leaves)
    stage.host.observe(roster([stays, leaves]))
    stage.host.apply([change(vcpu, knob) for vcpu in (stays, leaves) for knob in able(stage)])
    snapshot = stage.host.observe(roster([stays]))
    assert list(snapshot.knobs) == [stays]
    assert stage.held_by_kernel(leaves) == before
    assert stage.held_by_kernel(stays).weight == 1126


def test_a_change_for_an_ended_thread_has_vanished_and_the_others_are_applied(stage: Stage) -> None:
    one, two = stage.spawn(), stage.spawn()
    stage.host.observe(roster([one, two]))
    stage.end(one)
    results = stage.host.apply([change(one, Knob.WEIGHT), change(two, Knob.WEIGHT)])
    assert [result.outcome for result in results] == [Outcome.VANISHED, Outcome.APPLIED]


def test_a_change_for_another_life_of_the_id_has_vanished(stage: Stage) -> None:
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    stage.host.observe(roster([vcpu]))
    stale = vcpu._replace(start_ticks=vcpu.start_ticks + 1)
    results = stage.host.apply([change(stale, knob) for knob in able(stage)])
    assert {result.outcome for result in results} == {Outcome.VANISHED}
    assert stage.held_by_kernel(vcpu) == before


def test_a_change_for_a_thread_that_is_not_managed_has_vanished(stage: Stage) -> None:
    vcpu = stage.spawn()
    (result,) = stage.host.apply([change(vcpu, Knob.WEIGHT)])
    assert result.outcome is Outcome.VANISHED


def test_results_come_in_the_order_of_the_changes(stage: Stage) -> None:
    one, two = stage.spawn(), stage.spawn()
    stage.host.observe(roster([one, two]))
    changes = [change(vcpu, knob) for knob in able(stage) for vcpu in (two, one)]
    assert [result.change for result in stage.host.apply(changes)] == changes


@pytest.mark.parametrize("mask", [frozenset(), frozenset({Core(4000)})])
def test_a_mask_outside_what_is_allowed_is_rejected(stage: Stage, mask: frozenset[Core]) -> None:
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    (result,) = stage.host.apply([Change(vcpu, Knob.AFFINITY, mask, mask, "test")])
    assert result.outcome is Outcome.REJECTED


def test_a_realtime_thread_is_never_touched(stage: Stage) -> None:
    vcpu = stage.spawn()
    stage.make_realtime(vcpu)
    before = stage.held_by_kernel(vcpu)
    assert vcpu not in stage.host.observe(roster([vcpu])).counters
    results = stage.host.apply([change(vcpu, knob) for knob in able(stage)])
    assert {result.outcome for result in results} == {Outcome.VANISHED}
    assert stage.held_by_kernel(vcpu) == before


def test_a_thread_that_turns_realtime_is_not_touched_any_more(stage: Stage) -> None:
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    stage.make_realtime(vcpu)
    before = stage.held_by_kernel(vcpu)
    results = stage.host.apply([change(vcpu, knob) for knob in able(stage)])
    assert {result.outcome for result in results} == {Outcome.REJECTED}
    assert stage.held_by_kernel(vcpu) == before


def test_a_dry_run_says_so_and_writes_nothing(dry_stage: Stage) -> None:
    vcpu = dry_stage.spawn()
    before = dry_stage.held_by_kernel(vcpu)
    dry_stage.host.observe(roster([vcpu]))
    results = dry_stage.host.apply([change(vcpu, knob) for knob in able(dry_stage)])
    assert {result.outcome for result in results} == {Outcome.DRY_RUN}
    assert dry_stage.held_by_kernel(vcpu) == before
    assert dry_stage.host.restore() == Restored(0, (), 0, ())
