"""Domains in systemd's scopes, in real cgroups: tests/vm runs this on cgroup v2, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dasec.knobs.weights import WEIGHT_V1, WEIGHT_V2
from dasec.linux import cgroupfs
from dasec.model import Change, Knob, Outcome, Snapshot
from dasec.workloads.libvirt.libvirt import LibvirtWorkloads, Rule
from tests.contract.stage import MainlineStage

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
    files = {
        name: scope.hierarchy.weight_file(f"{scope.around}/{name}") for name in ("emulator", "vcpu0", "vcpu1")
    }
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
