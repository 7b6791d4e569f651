"""Domains in systemd's scopes, in real cgroups: tests/vm runs this on cgroup v2, too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.knobs.weights import WEIGHT_V1, WEIGHT_V2
from dasec.linux import cgroupfs
from dasec.model import Change, Core, Knob, Knobs, Outcome, Snapshot, VcpuId
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from guests.waiting import wait_for
from tests.contract.stage import MainlineStage, not_niced

from .scopes import Scope, machine_scope

pytestmark = pytest.mark.host

PERIOD_NS = 80_000_000


@pytest.fixture(params=[True, False], ids=["libvirt's own group inside", "without one"])
def scope(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scope]:
    with machine_scope(tmp_path, nested=request.param) as made:
        yield made


@pytest.fixture
def workloads(scope: Scope, tmp_path: Path) -> LibvirtWorkloads:
    return LibvirtWorkloads([Rule("vm", scope.name)], directory=str(tmp_path))


def weigh(scope: Scope, group: str, weight: int) -> None:
    """In the model's unit."""
    kind = WEIGHT_V1 if scope.hierarchy.version == 1 else WEIGHT_V2
    native = kind.native(weight)
    assert isinstance(native, int)
    cgroupfs.write_weight(scope.hierarchy.weight_file(group), native)


def native_weights(scope: Scope) -> dict[str, int]:
    names = ("emulator", "iothread1", "vcpu0", "vcpu1")
    files = {name: scope.hierarchy.weight_file(f"{scope.around}/{name}") for name in names}
    return {name: cgroupfs.read_weight(file) for name, file in files.items()}


def test_the_domain_is_found_by_where_its_threads_really_are(
    scope: Scope, workloads: LibvirtWorkloads
) -> None:
    (entry,) = workloads.discover(0).roster
    assert entry.home == scope.scope
    assert entry.threads == tuple((scope.process.pid, tid) for tid in scope.vcpus())
    assert workloads.discover(PERIOD_NS).notices == ()


def test_weights_go_into_the_vcpus_groups_and_nowhere_else_and_come_out_again(
    scope: Scope, workloads: LibvirtWorkloads, stage: MainlineStage
) -> None:
    before = native_weights(scope)
    (workload,) = stage.mainline.observe(workloads.discover(0).roster).workloads
    assert workload.nested
    first = workload.vcpus[0].id
    (result,) = stage.mainline.apply([Change(first, Knob.WEIGHT, 1024, 2048, "test")])
    assert result.outcome is Outcome.APPLIED
    assert native_weights(scope) == before | {"vcpu0": 2 * before["vcpu0"]}
    stage.mainline.restore()
    assert native_weights(scope) == before


def test_the_share_is_the_scopes_and_the_quota_libvirts_and_both_are_followed(
    scope: Scope, workloads: LibvirtWorkloads, stage: MainlineStage
) -> None:
    roster = workloads.discover(0).roster

    def standing(snapshot: Snapshot) -> tuple[int, float]:
        (workload,) = snapshot.workloads
        return workload.share, round(workload.quota_cores or 0, 6)

    weigh(scope, scope.scope, 512)
    scope.limit(0.3)
    assert standing(stage.mainline.observe(roster)) == (512, 0.3)
    weigh(scope, scope.scope, 1024)  # as daemon-reload does (systemd #17938)
    assert standing(stage.mainline.observe(roster)) == (1024, 0.3)
    scope.limit(0.5)
    assert standing(stage.mainline.observe(roster)) == (1024, 0.5)


@pytest.fixture
def following(scope: Scope, tmp_path: Path) -> LibvirtWorkloads:
    rules = [Rule("vm", scope.name)]
    return LibvirtWorkloads(rules, with_emulator=True, directory=str(tmp_path))


def main_of(scope: Scope, snapshot: Snapshot) -> VcpuId:
    return own_of(scope, snapshot)["emulator"]


def own_of(scope: Scope, snapshot: Snapshot) -> dict[str, VcpuId]:
    """QEMU's own threads by their groups."""
    (workload,) = snapshot.workloads
    main, io_thread = [vcpu.id for vcpu in workload.vcpus if vcpu.emulator]
    assert {main.pid, main.tid, io_thread.pid} == {scope.process.pid}
    assert io_thread.tid == scope.others()["IO iothread1"]
    return {"emulator": main, "iothread1": io_thread}


def weight_of(main: VcpuId, weight: int) -> list[Change]:
    return [Change(main, Knob.WEIGHT, 1024, weight, "test")]


@pytest.mark.parametrize("group", ["emulator", "iothread1"])
def test_where_it_is_asked_for_qemus_own_thread_has_the_weight_of_its_group_and_nothing_else(
    scope: Scope, following: LibvirtWorkloads, stage: MainlineStage, group: str
) -> None:
    before = native_weights(scope)
    snapshot = stage.mainline.observe(following.discover(0).roster)
    own = own_of(scope, snapshot)[group]
    assert snapshot.knobs[own] == Knobs(1024, None, None)
    (result,) = stage.mainline.apply(weight_of(own, 2048))
    assert result.outcome is Outcome.APPLIED
    assert native_weights(scope) == before | {group: 2 * before[group]}
    (held,) = stage.journal.outstanding()
    assert (held.ref.group.directory.rpartition("/")[2], held.prior) == (group, before[group])
    others = [
        Change(own, Knob.RESCHEDULING_LATENCY, 0, 4_000_000, "test"),
        Change(own, Knob.AFFINITY, frozenset(), frozenset({Core(0)}), "test"),
        Change(own, Knob.CAP, 0, 500_000, "test"),
    ]
    assert {one.outcome for one in stage.mainline.apply(others)} == {Outcome.YIELDED}
    stage.mainline.restore()
    assert native_weights(scope) == before
    assert stage.journal.outstanding() == ()


def test_it_adds_nothing_to_its_domains_share_and_quota(
    scope: Scope, workloads: LibvirtWorkloads, following: LibvirtWorkloads, stage: MainlineStage
) -> None:
    for number in range(2):
        scope.limit_vcpu(number, 0.2)
    found = [stage.mainline.observe(each.discover(0).roster).workloads[0] for each in (workloads, following)]
    assert [len(each.vcpus) for each in found] == [2, 4]
    (share, quota), with_own = ((each.share, each.quota_cores) for each in found)
    assert with_own == (share, quota)
    assert quota == pytest.approx(0.4)


def test_a_thread_of_another_process_in_its_group_takes_that_weight_from_us(
    scope: Scope, following: LibvirtWorkloads, stage: MainlineStage
) -> None:
    before = native_weights(scope)
    roster = following.discover(0).roster
    main = main_of(scope, stage.mainline.observe(roster))
    stage.mainline.apply(weight_of(main, 2048))
    with scope.stranger():
        wait_for(lambda: stage.mainline.observe(roster).knobs[main].weight is None, every_s=0.001)
        assert native_weights(scope) == before
        assert [one.outcome for one in stage.mainline.apply(weight_of(main, 512))] == [Outcome.YIELDED]
        assert native_weights(scope) == before
    wait_for(lambda: stage.mainline.observe(roster).knobs[main].weight == 1024, every_s=0.001)


def test_a_thread_of_another_process_that_comes_just_then_is_seen_before_the_first_write(
    scope: Scope, following: LibvirtWorkloads, stage: MainlineStage
) -> None:
    before = native_weights(scope)
    main = main_of(scope, stage.mainline.observe(following.discover(0).roster))
    with scope.stranger():
        (result,) = stage.mainline.apply(weight_of(main, 2048))
        assert result.outcome is Outcome.REJECTED
        assert native_weights(scope) == before


def test_who_follows_it_no_more_puts_its_weight_back(
    scope: Scope, workloads: LibvirtWorkloads, following: LibvirtWorkloads, stage: MainlineStage
) -> None:
    before = native_weights(scope)
    main = main_of(scope, stage.mainline.observe(following.discover(0).roster))
    stage.mainline.apply(weight_of(main, 2048))
    stage.mainline.observe(workloads.discover(0).roster)
    assert native_weights(scope) == before


def test_it_is_never_niced_whoever_sits_in_its_group(
    scope: Scope, following: LibvirtWorkloads, tmp_path: Path
) -> None:
    """All that it starts would be."""
    made = MainlineStage(tmp_path / "nice", dry_run=False, nice=True)
    not_niced(scope.process.pid)
    with scope.stranger():
        snapshot = made.mainline.observe(following.discover(0).roster)
        main = main_of(scope, snapshot)
        assert snapshot.knobs[main] == Knobs(None, None, None)
        assert [one.outcome for one in made.mainline.apply(weight_of(main, 512))] == [Outcome.YIELDED]
        assert os.getpriority(os.PRIO_PROCESS, main.tid) == 0
    made.close()
