"""Somebody else writes the same knobs: yield, reapply or alert, and never a recycled id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dasec.hosts.host import OnForeignWrite
from dasec.hosts.mainline import Mainline
from dasec.knobs.groups import CGROUP
from dasec.knobs.knob import KnobRef, NativeKnob, NativeValue, read, write
from dasec.knobs.masks import AFFINITY
from dasec.knobs.slices import SLICE
from dasec.linux.errors import ThreadGone
from dasec.model import THREAD_KNOBS, Change, Core, Knob, Knobs, KnobValue, Outcome
from dasec.safety.journal.journal import Journal
from tests.contract.stage import NOTHING, MainlineStage, roster
from tests.contract.test_host import NEW, THEIRS

pytestmark = pytest.mark.host

Build = Callable[[OnForeignWrite], MainlineStage]


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    made: list[MainlineStage] = []

    def one(answer: OnForeignWrite) -> MainlineStage:
        made.append(MainlineStage(tmp_path, dry_run=False, answer=answer))
        return made[-1]

    yield one
    for stage in made:
        stage.close()


def value_of(knobs: Knobs, knob: Knob) -> KnobValue | None:
    return (knobs.weight, knobs.rescheduling_latency_ns, knobs.affinity)[THREAD_KNOBS.index(knob)]


@pytest.mark.parametrize("knob", THREAD_KNOBS)
@pytest.mark.parametrize("answer", list(OnForeignWrite))
def test_each_answer_to_a_foreign_write_is_given_within_a_period(
    build: Build, answer: OnForeignWrite, knob: Knob
) -> None:
    stage = build(answer)
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    stage.host.observe(roster([vcpu]))
    stage.host.apply([Change(vcpu, knob, NEW[knob], NEW[knob], "test")])
    stage.host.observe(roster([vcpu]))
    stage.meddle(vcpu, knob, THEIRS[knob])
    seen = value_of(stage.host.observe(roster([vcpu])).knobs[vcpu], knob)
    kernel = value_of(stage.held_by_kernel(vcpu), knob)
    expected = {
        OnForeignWrite.YIELD: (None, THEIRS[knob]),
        OnForeignWrite.REAPPLY: (NEW[knob], NEW[knob]),
        OnForeignWrite.ALERT: (THEIRS[knob], THEIRS[knob]),
    }
    assert (seen, kernel) == expected[answer]
    (notice,) = stage.mainline.notices()
    assert "somebody else wrote" in notice
    if knob is not Knob.WEIGHT:  # a group of ours goes away with its weight
        stage.host.restore()
        assert value_of(stage.held_by_kernel(vcpu), knob) == THEIRS[knob] != value_of(before, knob)


def test_a_mask_set_since_the_last_look_is_not_overwritten_by_our_first_write(build: Build) -> None:
    stage = build(OnForeignWrite.YIELD)
    vcpu = stage.spawn()
    seen = stage.host.observe(roster([vcpu]))
    stage.meddle(vcpu, Knob.AFFINITY, THEIRS[Knob.AFFINITY])
    before = seen.knobs[vcpu].affinity
    assert before is not None
    (result,) = stage.host.apply([Change(vcpu, Knob.AFFINITY, before, NEW[Knob.AFFINITY], "test")])
    assert result.outcome is Outcome.REJECTED
    assert "somebody else set its mask" in result.detail
    assert value_of(stage.held_by_kernel(vcpu), Knob.AFFINITY) == THEIRS[Knob.AFFINITY]
    (workload,) = stage.host.observe(roster([vcpu])).workloads
    assert workload.vcpus[0].allowed == THEIRS[Knob.AFFINITY]


def test_under_alert_the_policy_may_write_again_and_restore_gives_back_theirs(build: Build) -> None:
    stage = build(OnForeignWrite.ALERT)
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    latency = Knob.RESCHEDULING_LATENCY
    stage.host.apply([Change(vcpu, latency, 0, 4_000_000, "test")])
    stage.meddle(vcpu, latency, 9_000_000)
    stage.host.observe(roster([vcpu]))
    (result,) = stage.host.apply([Change(vcpu, latency, 0, 5_000_000, "test")])
    assert result.outcome is Outcome.APPLIED
    stage.host.restore()
    assert stage.held_by_kernel(vcpu).rescheduling_latency_ns == 9_000_000


def test_our_own_weight_writes_are_not_taken_for_somebody_elses(build: Build) -> None:
    stage = build(OnForeignWrite.YIELD)
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    for weight in range(1000, 1050):
        stage.host.apply([Change(vcpu, Knob.WEIGHT, 0, weight, "test")])
        assert stage.host.observe(roster([vcpu])).knobs[vcpu].weight == weight
    assert stage.mainline.notices() == ()


def test_a_thread_that_somebody_moves_out_of_our_group_loses_its_weight(build: Build) -> None:
    stage = build(OnForeignWrite.YIELD)
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    stage.host.apply([Change(vcpu, Knob.WEIGHT, 0, 1126, "test")])
    write(KnobRef(vcpu, CGROUP, stage.hierarchy.mount), "/")
    assert stage.host.observe(roster([vcpu])).knobs[vcpu].weight is None
    stage.host.restore()
    assert stage.own_groups() == []


def test_a_mask_that_we_do_not_hold_is_followed(build: Build) -> None:
    stage = build(OnForeignWrite.YIELD)
    vcpu = stage.spawn()
    stage.host.observe(roster([vcpu]))
    stage.meddle(vcpu, Knob.AFFINITY, frozenset({Core(1)}))
    snapshot = stage.host.observe(roster([vcpu]))
    assert snapshot.workloads[0].vcpus[0].allowed == frozenset({Core(1)})
    assert snapshot.knobs[vcpu].affinity == frozenset({Core(1)})


@pytest.mark.parametrize(
    ("kind", "value"),
    [(SLICE, 9_000_000), (AFFINITY, (0,)), (CGROUP, "/")],
)
def test_a_recycled_id_is_neither_read_nor_written(
    build: Build, kind: NativeKnob, value: NativeValue
) -> None:
    stage = build(OnForeignWrite.YIELD)
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    stale = KnobRef(vcpu._replace(start_ticks=vcpu.start_ticks - 1), kind, stage.hierarchy.mount)
    with pytest.raises(ThreadGone):
        read(stale)
    with pytest.raises(ThreadGone):
        write(stale, value)
    assert stage.held_by_kernel(vcpu) == before


def test_a_full_journal_means_that_nothing_is_written(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = build(OnForeignWrite.YIELD)
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu)
    stage.host.observe(roster([vcpu]))

    def full(_: object, __: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "begin", full)
    results = stage.host.apply([Change(vcpu, knob, NEW[knob], NEW[knob], "test") for knob in THREAD_KNOBS])
    assert {result.outcome for result in results} == {Outcome.REJECTED}
    assert "No space left" in results[0].detail
    assert stage.held_by_kernel(vcpu) == before


def test_a_host_that_cannot_do_a_knob_does_not_offer_it(tmp_path: Path) -> None:
    journal, _ = Journal.open(tmp_path)
    host = Mainline(journal, NOTHING)
    stage = MainlineStage(tmp_path / "other", dry_run=False)
    vcpu = stage.spawn()
    assert host.observe(roster([vcpu])).knobs[vcpu] == (None, None, None)
    for one in (host, stage, journal):
        one.close()
