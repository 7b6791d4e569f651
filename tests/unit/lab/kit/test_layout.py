"""Where threads live, and the groups themselves on a fake hierarchy of either version."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from dasec.lab.kit.home import make_homes
from dasec.lab.kit.layout import (
    GroupLayout,
    emulator_group,
    groups_for,
    home_of,
    managed_group,
    share_of,
    vcpu_group,
    vm_level,
)
from dasec.lab.kit.scenario import SERVICE, Scenario, Tenant, fan_out, service
from dasec.lab.kit.tree import CLIENT, DAEMON, EMULATOR, TOP, TOP_NAME, Group, Tree

CACHE = Tenant("memcached-0", SERVICE, 2, vcpu_names=("mc-worker",), has_emulator=True)
SCENARIO = Scenario(2, (CACHE, fan_out("service-0", 200), fan_out("service-1", 200)))


def names(layout: GroupLayout) -> list[str]:
    return [group.name for group in groups_for(SCENARIO, layout)]


def test_a_workload_has_a_group_and_in_it_one_for_each_vcpu_as_libvirt_makes_them() -> None:
    found = names(GroupLayout.VM)
    assert [name for name in found if name.startswith("machine/memcached-0")] == [
        "machine/memcached-0",
        "machine/memcached-0/vcpus",
        "machine/memcached-0/vcpus/vcpu0",
        "machine/memcached-0/vcpus/vcpu1",
        "machine/memcached-0/emulator",
    ]
    assert [name for name in found if name.startswith("machine/service-0")] == [
        "machine/service-0",
        *(f"machine/service-0/vcpu{index}" for index in range(4)),
    ]


def test_a_domains_vcpus_lie_beside_its_emulator_and_it_is_called_by_libvirts_name(tmp_path: Path) -> None:
    scenario, tree = Scenario(2, (replace(CACHE, is_domain=True),)), Tree(1, tmp_path / TOP_NAME)
    found = [group.name for group in groups_for(scenario, GroupLayout.VM)]
    assert [name for name in found if name.startswith("machine/")] == [
        "machine/memcached-0",
        "machine/memcached-0/vcpu0",
        "machine/memcached-0/vcpu1",
        "machine/memcached-0/emulator",
    ]
    (home,) = make_homes(tree, scenario, GroupLayout.VM, limited=True)
    managed = home.managed((1,))
    assert managed is not None
    assert managed.table()[-1] == 'libvirt = "memcached-0"'


def test_flat_means_no_group_of_a_workload() -> None:
    assert {name.count("/") for name in names(GroupLayout.FLAT) if name.startswith("machine/")} == {1}


def test_threads_that_share_have_one_group_for_each_workload_as_docker_makes_it() -> None:
    found = [name for name in names(GroupLayout.SHARED) if name.startswith("machine/")]
    assert found == ["machine/memcached-0", "machine/service-0", "machine/service-1"]
    assert managed_group(CACHE, GroupLayout.SHARED) == "machine/memcached-0"
    assert share_of(CACHE, GroupLayout.SHARED) == 1024


def test_a_thread_that_shares_its_workloads_group_stays_there_and_is_known(tmp_path: Path) -> None:
    tree, tenant = Tree(1, tmp_path / TOP_NAME), replace(CACHE, vcpu_names=("*",))
    (home,) = make_homes(tree, Scenario(2, (tenant,)), GroupLayout.SHARED, limited=True)
    home.settle([os.getpid()])
    assert (os.getpid(), os.getpid()) in [(pid, tid) for pid, tid, _ in home.vcpus]
    assert list(tmp_path.glob("**/tasks")) == []
    managed = home.managed((os.getpid(),))
    assert managed is not None
    assert managed.cgroup == f"{tree.name}/machine/memcached-0"


@pytest.mark.parametrize("layout", GroupLayout)
def test_parents_come_first_and_every_place_exists(layout: GroupLayout) -> None:
    found = names(layout)
    for position, name in enumerate(found):
        parent = name.rpartition("/")[0]
        assert not parent or parent in found[:position]
    for tenant in SCENARIO.tenants:
        assert home_of(tenant, layout) in found
        assert {vcpu_group(tenant, layout, index) for index in range(tenant.vcpus)} <= {*found}
    assert emulator_group(SCENARIO.tenants[0], layout) in found


def test_the_daemon_is_shown_all_vcpus_of_a_workload_and_nothing_else() -> None:
    for tenant in SCENARIO.tenants:
        below = [name for name in names(GroupLayout.VM) if name.startswith(f"{managed_group(tenant)}/")]
        assert below == [vcpu_group(tenant, GroupLayout.VM, index) for index in range(tenant.vcpus)]


@pytest.mark.parametrize("layout", [GroupLayout.VM, GroupLayout.SHARED])
def test_a_vm_to_our_scheduler_is_the_group_that_has_all_of_a_workloads_threads(layout: GroupLayout) -> None:
    for tenant in SCENARIO.tenants:
        top = PurePosixPath(f"/{TOP_NAME}", home_of(tenant, layout))
        assert vm_level(f"/{TOP_NAME}", tenant, layout) == len(top.parents) == 3
        assert PurePosixPath(f"/{TOP_NAME}", vcpu_group(tenant, layout, 0)).is_relative_to(top)
    top = PurePosixPath(home_of(CACHE, layout))
    assert PurePosixPath(emulator_group(CACHE, layout)).is_relative_to(top)


def test_shares_are_what_the_groups_give() -> None:
    memcached, service, _ = SCENARIO.tenants
    assert [share_of(one, GroupLayout.VM) for one in (memcached, service)] == [1024, 1024]
    assert [share_of(one, GroupLayout.FLAT) for one in (memcached, service)] == [2048, 4096]


def test_only_the_client_and_the_whole_have_a_weight_of_their_own() -> None:
    groups = groups_for(SCENARIO, GroupLayout.VM)
    assert {group.name: group.weight for group in groups if group.weight != 1024} == {
        CLIENT: 262144,
        TOP: 10240,
    }
    assert DAEMON in {group.name for group in groups}


def test_on_v1_a_group_is_a_directory_and_the_clients_weight_is_the_largest(tmp_path: Path) -> None:
    tree = Tree(1, tmp_path / TOP_NAME)
    tree.make(groups_for(SCENARIO, GroupLayout.VM))
    assert (tree.directory("machine/service-1/vcpu3")).is_dir()
    assert tree.weights() == {".": 10240, CLIENT: 262144}
    assert not list(tmp_path.rglob("cgroup.*"))


def test_on_v2_vcpu_groups_are_threaded_and_every_parent_hands_on_the_cpu_controller(tmp_path: Path) -> None:
    tree = Tree(2, tmp_path / TOP_NAME)
    tree.make(groups_for(SCENARIO, GroupLayout.VM))
    threaded = {path.parent.name for path in tmp_path.rglob("cgroup.type")}
    assert threaded == {EMULATOR, "vcpus", *(f"vcpu{index}" for index in range(4))}
    parents = {path.parent.name for path in tmp_path.rglob("cgroup.subtree_control")}
    assert parents == {tmp_path.name, TOP_NAME, "machine", "memcached-0", "vcpus", "service-0", "service-1"}
    assert tree.weights() == {".": 1000, CLIENT: 10_000}


def test_weights_on_v2_are_in_its_own_unit(tmp_path: Path) -> None:
    tree = Tree(2, tmp_path / TOP_NAME)
    tree.make([Group(TOP), Group("half", weight=512)])
    assert tree.weights() == {"half": 50}


def test_sweeping_empty_groups_removes_them_and_sweeping_again_does_nothing(tmp_path: Path) -> None:
    tree = Tree(1, tmp_path / TOP_NAME)
    tree.make(Group(group.name) for group in groups_for(SCENARIO, GroupLayout.VM))
    tree.sweep()
    tree.sweep()
    assert not tree.top.exists()


def test_a_quota_of_each_vcpu_is_that_of_its_own_group_and_goes_with_the_limits() -> None:
    limited = replace(service("vm", 2, 100.0, {}), vcpu_quota_cores=0.4)
    groups = groups_for(Scenario(4, (limited,)), GroupLayout.VM)
    own = {group.name: group.quota_cores for group in groups if "vm" in group.name}
    assert own == {"machine/vm": None, "machine/vm/vcpu0": 0.4, "machine/vm/vcpu1": 0.4}
    unlimited = groups_for(Scenario(4, (limited,)), GroupLayout.VM, limited=False)
    assert {group.quota_cores for group in unlimited} == {None}
