"""Threads that libvirt keeps, on this kernel: its groups have the weights, its masks are the limit."""

from __future__ import annotations

import pytest

from dasec.model import Change, Core, Knob, KnobValue, Outcome, VcpuId, Workload
from dasec.roster import RosterEntry, Terms
from tests.contract.stage import MainlineStage

from .group import TestGroup

pytestmark = pytest.mark.host

BOTH = frozenset({Core(0), Core(1)})


def domain(*vcpus: VcpuId, cores: frozenset[Core] | None = None, home: str | None = None) -> RosterEntry:
    numbers = tuple((one.pid, one.tid) for one in vcpus)
    return RosterEntry("vm", None, numbers, tuple(Terms(one.start_ticks, cores) for one in vcpus), home)


def write(stage: MainlineStage, vcpu: VcpuId, knob: Knob, new: KnobValue) -> Outcome:
    (result,) = stage.mainline.apply([Change(vcpu, knob, new, new, "test")])
    return result.outcome


def workload(stage: MainlineStage, entry: RosterEntry) -> Workload:
    (found,) = stage.mainline.observe([entry]).workloads
    return found


def test_the_weight_of_a_vcpu_goes_into_libvirts_group_for_it(stage: MainlineStage, group: TestGroup) -> None:
    vcpu = stage.spawn()
    group.enter(vcpu.pid, "vcpu0")
    stage.mainline.observe([domain(vcpu, home=group.group)])
    assert write(stage, vcpu, Knob.WEIGHT, 1126) is Outcome.APPLIED
    assert group.weight("vcpu0") == 1126
    assert stage.own_groups() == []
    stage.mainline.restore()
    assert group.weight("vcpu0") == 1024
    stage.end(vcpu)


def test_a_kept_thread_never_gets_a_group_of_ours(stage: MainlineStage) -> None:
    vcpu = stage.spawn()
    snapshot = stage.mainline.observe([domain(vcpu)])
    assert snapshot.knobs[vcpu].weight is None
    assert write(stage, vcpu, Knob.WEIGHT, 1126) is Outcome.YIELDED
    assert stage.own_groups() == []


def test_share_and_quota_are_the_domains_even_with_a_single_vcpu(
    stage: MainlineStage, group: TestGroup
) -> None:
    vcpu = stage.spawn()
    (group.directory / "vm").mkdir()
    group.enter(vcpu.pid, "vm/vcpu0")
    group.set_weight("vm", 2048)
    group.limit_to_half_a_core("vm/vcpu0")
    found = workload(stage, domain(vcpu, home=f"{group.group}/vm"))
    assert (found.share, found.quota_cores, found.nested) == (2048, 0.5, True)
    stage.end(vcpu)


def test_a_mask_of_ours_that_new_terms_forbid_is_put_back(stage: MainlineStage) -> None:
    vcpu = stage.spawn()
    before = stage.held_by_kernel(vcpu).affinity
    stage.mainline.observe([domain(vcpu, cores=BOTH)])
    assert write(stage, vcpu, Knob.AFFINITY, frozenset({Core(0)})) is Outcome.APPLIED
    found = workload(stage, domain(vcpu, cores=frozenset({Core(1)})))
    assert stage.held_by_kernel(vcpu).affinity == before
    assert found.vcpus[0].allowed == frozenset({Core(1)})
    assert write(stage, vcpu, Knob.AFFINITY, frozenset({Core(0)})) is Outcome.REJECTED
    assert write(stage, vcpu, Knob.AFFINITY, frozenset({Core(1)})) is Outcome.APPLIED


def test_a_mask_of_ours_that_new_terms_allow_stays(stage: MainlineStage) -> None:
    vcpu = stage.spawn()
    stage.mainline.observe([domain(vcpu, cores=BOTH)])
    assert write(stage, vcpu, Knob.AFFINITY, frozenset({Core(1)})) is Outcome.APPLIED
    stage.mainline.observe([domain(vcpu, cores=frozenset({Core(1)}))])
    assert stage.held_by_kernel(vcpu).affinity == frozenset({Core(1)})
